/** Texts of the palette and of the list of keys in English. They come with these. */
export const helpEn = {
  'palette.title': 'Jump to',
  'palette.hint': 'Type a page, project, workflow or run number',
  'palette.none': 'No results',
  'palette.page': 'page',
  'palette.run': 'run',
  'help.title': 'Keyboard',
  'help.palette': 'Search or jump to a page',
  'help.help': 'This help',
  'help.search': 'Focus the filter of the page',
  'help.rows': 'Next and previous row',
  'help.open': 'Open the row',
  'help.escape': 'Close the open panel',
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
