/** 跳转面板和快捷键列表的中文文本。 */
import type { HelpKey } from './en'

export const helpZh: Record<HelpKey, string> = {
  'palette.title': '跳转到',
  'palette.hint': '输入页面、项目、工作流或运行编号',
  'palette.none': '未找到',
  'palette.page': '页面',
  'palette.run': '运行',
  'help.title': '键盘',
  'help.palette': '搜索或跳转',
  'help.help': '此帮助',
  'help.search': '到页面的筛选框',
  'help.rows': '下一行和上一行',
  'help.open': '打开此行',
  'help.escape': '关闭已打开的内容',
  'help.goToday': '到今日',
  'help.goWorkflows': '到工作流',
  'help.goRuns': '到运行',
  'help.goAlerts': '转到告警',
  'help.goProjects': '到项目',
  'help.goCluster': '到集群',
  'help.pause': '暂停或恢复运行',
  'help.recover': '修复运行',
  'help.wrap': '日志换行',
  'help.follow': '跟随日志',
  'help.goInsight': '转到洞察',
}
