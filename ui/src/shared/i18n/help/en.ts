/** Texts of the palette and of the list of keys in English. They come with these. */
export const helpEn = {
  'palette.title': 'Jump to',
  'palette.hint': 'Type a page, a project, a workflow or the number of a run',
  'palette.none': 'Nothing found',
  'palette.page': 'page',
  'palette.run': 'run',
  'help.title': 'Keyboard',
  'help.palette': 'Search or jump to anything',
  'help.help': 'This help',
  'help.search': 'To the filter of the page',
  'help.rows': 'Next and previous row',
  'help.open': 'Open the row',
  'help.escape': 'Close what is open',
  'help.goToday': 'To Today',
  'help.goWorkflows': 'To the workflows',
  'help.goRuns': 'To the runs',
  'help.goAlerts': 'To the alerts',
  'help.goProjects': 'To the projects',
  'help.goCluster': 'To the cluster',
  'help.pause': 'Pause or resume the run',
  'help.recover': 'Recover the run',
  'help.wrap': 'Wrap lines of the log',
  'help.follow': 'Follow the log',
  'help.goInsight': 'To Insight',
} as const

export type HelpKey = keyof typeof helpEn
