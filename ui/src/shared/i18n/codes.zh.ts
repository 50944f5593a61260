/**
 * What Shoal says about runs, in Chinese, by its codes (docs/codes.md).
 *
 * A test compares them with that page. Arguments may be null where it says so.
 */
import { durationText } from '../time/format'

export type Arguments = Readonly<Record<string, string | number | null>>
/** Says the name of a state. */
export type StateName = (state: string | number | null | undefined) => string

export type Say = (a: Arguments, state: StateName) => string

const item = (a: Arguments): string => `${a.upstream ? `任务 ${a.upstream}（` : ''}${a.project}/${a.workflow}${a.upstream ? '）' : ''}`
const more = (a: Arguments): string => (a.more ? `；另有 ${a.more} 项` : '')
const of = (a: Arguments): string => `${item(a)} 在 ${a.from}（${a.date}）`
const final = (a: Arguments): string => (a.is_final ? '；不会自动重新运行：它可能已经生效' : '')
const lasting = (seconds: Arguments[string] | undefined): string => (typeof seconds === 'number' ? durationText(1000 * seconds) : String(seconds))

export const codesZh = {
  'child.instance': (a, state) => `实例 ${a.instance}：${state(a.state)}`,
  'child.items': (a) => `${a.items} 项中已成功 ${a.succeeded} 项，已启动 ${a.started} 项`,
  'child.more': (a) => `还有 ${a.instances} 个实例`,
  'child.starting': () => '正在启动一个实例',
  'delay.look': (a) => `下一次查看在 ${a.at}`,
  'delay.retry': (a) => `重试延迟到 ${a.at} 为止`,
  'delay.start': (a) => `启动延迟到 ${a.at} 为止`,
  'dependency.looking': () => '其主节点即将查找相关运行',
  'dependency.no_workflow': (a) => `项目 ${a.project} 中没有工作流 ${a.workflow}`,
  'dependency.run': (a, state) => `${of(a)}：${a.instance === null ? '还没有运行' : `实例 ${a.instance}，${state(a.state)}`}`,
  'fire.late': (a) => `调度 ${a.schedule} 本应在 ${a.at} 触发`,
  'instance.more_tasks': (a) => `还有 ${a.tasks} 个任务`,
  'instance.quarantined': (a) =>
    `自 ${a.since} 起被隔离，已尝试 ${a.tries} 次：${a.reason}` +
    (a.running ? `；可能仍在运行的任务：${a.running}` : ''),
  'look.waits': (a) => `自 ${a.since} 起已查看 ${a.looks} 次${a.answer ? `；最近的结果：${a.answer}` : ''}`,
  'overlap.admits': () => '主节点下一次查看时会放行',
  'overlap.instance': (a, state) => `实例 ${a.instance}（${a.logical_time}）：${state(a.state)}`,
  'overlap.lineup': (a) => `重叠策略 ${a.overlap}：活动 ${a.active} / ${a.max_active}，等待 ${a.waiting}`,
  'partition.owner': (a) => `主节点 ${a.master} 拥有分区 ${a.partition}（纪元 ${a.epoch}）`,
  'partition.unowned': (a) => `分区 ${a.partition} 目前没有主节点`,
  'partition.works': (a) => `其主节点自 ${a.since} 起正在处理`,
  'queue.arriving': (a) => `正在进入工作组 ${a.group} 的队列，或刚被取走`,
  'queue.place': (a) => `在工作组 ${a.group} 的队列中排第 ${a.place} 位${a.is_at_least ? '或更后' : ''}，共 ${a.depth} 个`,
  'reason.backfill_cancelled': (a) => `补数 ${a.backfill} 已取消`,
  'reason.child': (a, state) => `${a.instance === null ? '子工作流' : `实例 ${a.instance}`}${state(a.state)}：${a.why}`,
  'reason.child_refused': (a) => `${a.instance === null ? '子工作流' : `实例 ${a.instance}`}无法启动：${a.why}`,
  'reason.claim_gone': (a) => `工作节点 ${a.worker} 已不再持有它${final(a)}`,
  'reason.dependency_missing': (a) => `${of(a)} 没有运行${more(a)}`,
  'reason.dependency_no_workflow': (a) => `项目 ${a.project} 中没有工作流 ${a.workflow}${more(a)}`,
  'reason.dependency_run': (a, state) => `${of(a)}：实例 ${a.instance} ${state(a.state)}${more(a)}`,
  'reason.dependency_task': (a, state) => `${of(a)}：在实例 ${a.instance} 中${state(a.state)}${more(a)}`,
  'reason.disabled': () => '已禁用',
  'reason.exit_code': (a) => `退出码 ${a.exit_code}${a.output ? `：${a.output}` : ''}`,
  'reason.failures_ignored': (a) => `${a.tasks} 个任务失败，按工作流设置忽略`,
  'reason.forced': (a) => `${a.by} 将其视为成功${a.why ? `：${a.why}` : ''}`,
  'reason.items': (a) => `${a.items} 项中有 ${a.failed} 项未成功；第一项：${a.why}`,
  'reason.killed_between_looks': () => '在两次查看之间按请求终止',
  'reason.killed_by_request_unstarted': () => '启动前按请求终止',
  'reason.killed_for': (a) => `已终止：${a.task} 失败`,
  'reason.killed_unstarted': () => '启动前已终止',
  'reason.no_branch': () => '没有选择通向此处的分支',
  'reason.no_run': () => '没有找到运行',
  'reason.none_failed': () => '没有上游任务失败',
  'reason.none_succeeded': () => '没有上游任务成功',
  'reason.not_selected': () => '本次运行未选择此任务',
  'reason.not_started': (a) => `未启动：${a.task ?? '另一个任务'}失败`,
  'reason.other_branch': (a) => `${a.task} 选择了另一个分支`,
  'reason.ran_longer': (a) => `运行时间超过 ${a.after}`,
  'reason.replaced': (a) => `被实例 ${a.instance} 替换`,
  'reason.signal': (a) => `被信号 ${a.signal} 结束`,
  'reason.stopped': () => '按请求停止',
  'reason.stopped_between_looks': () => '在两次查看之间停止',
  'reason.stopped_unstarted': () => '启动前已停止',
  'reason.superseded': (a) => `被实例 ${a.instance} 取代`,
  'reason.tasks_failed': (a) => `${a.tasks} 个任务失败`,
  'reason.timed_out': (a) => `${a.after} 后超时${a.answer ? `；最近的结果：${a.answer}` : ''}`,
  'reason.upstream_failed': (a) => `上游任务 ${a.task} 失败`,
  'reason.upstream_killed': (a) => `上游任务 ${a.task} 被终止`,
  'reason.upstream_lost': (a) => `上游任务 ${a.task} 丢失`,
  'reason.upstream_skipped': (a) => `上游任务 ${a.task} 被跳过`,
  'reason.worker_gone': (a) => `${a.worker === null ? '其工作节点' : `工作节点 ${a.worker} `}已离开${final(a)}`,
  'result.instance': (a, state) => `运行已结束：${state(a.state)}${a.reason ? `（${a.reason}）` : ''}`,
  'result.newer_attempt': (a, state) => `已有第 ${a.attempt} 次尝试：${state(a.state)}`,
  'result.task': (a, state) => `尝试已结束：${state(a.state)}${a.reason ? `（${a.reason}）` : ''}`,
  'run.expected': (a) => `${a.usual_s === null ? '' : `通常耗时 ${lasting(a.usual_s)}；`}预计于 ${a.at} 结束`,
  'run.late': (a) => `实例 ${a.instance} 本应在 ${a.at} 之前结束`,
  'run.overdue': (a) => `实例 ${a.instance} 已超过其超时时间`,
  'run.overlap': () => '等待同一工作流的其他运行',
  'run.paused': (a, state) => `运行状态：${state(a.state)}`,
  'run.slower': (a) => `自 ${a.since} 起比平时更久，已超出 ${lasting(a.by_s)}`,
  'run.starting': () => '其主节点即将启动它',
  'run.stopping': () => '运行正在停止',
  'slots.holder': (a) => `${a.holder} 占用一个槽位（${a.workflow}，实例 ${a.instance}）`,
  'slots.no_group': (a) => `项目 ${a.project} 中没有并发组 ${a.group}`,
  'slots.taken': (a) => `并发组 ${a.group}：已占用 ${a.taken} / ${a.slots} 个槽位${a.place === null ? '' : `，排第 ${a.place} 位，共 ${a.waiting} 个等待`}`,
  'task.held': () => '已就绪，但运行正在暂停',
  'tasks.blocked': (a) => `等待槽位的任务：${a.tasks}`,
  'tasks.delayed': (a) => `等待时间到来的任务：${a.tasks}`,
  'tasks.queued': (a) => `等待工作节点的任务：${a.tasks}`,
  'upstream.more': (a) => `还有 ${a.tasks} 个上游任务`,
  'upstream.rule': (a) => `运行条件 ${a.rule}：${a.tasks} 个上游任务中有 ${a.open} 个未结束`,
  'upstream.task': (a, state) => `上游任务 ${a.upstream}：${state(a.state)}`,
  'upstream.waiting': (a) => `等待上游任务的任务：${a.tasks}`,
  'workers.none': (a) => `工作组 ${a.group} 没有工作节点`,
  'workers.paused': (a) => `工作节点 ${a.worker} 不接受任务：${a.reason}`,
  'workers.runs': (a) => `自 ${a.since} 起在 ${a.worker} 上运行`,
  'workers.slots': (a) => `工作组 ${a.group}：${a.workers} 个工作节点，${a.free} 个空闲槽位`,
  'workers.starting': (a) => `工作节点 ${a.worker} 已取走任务，正在启动进程`,
} satisfies Record<string, Say>
