/** What takes longer than it did: workflows, and the tasks of one. */
import type { WorkflowTrend } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, differenceText, percentText, secondsText } from '@/shared/time/seconds'
import { useWidth, type Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'
import { Spark } from '../charts/Spark'
import { daysOf } from '../days'
import { DifferenceBar, Growth, Pair, SortChoice, WorkflowName } from '../parts'
import { workflowTrends } from '../queries'
import type { TabProps } from '../view'
import { TaskTrends, WorkflowDays } from './OneWorkflow'

export function Slower({ view, search, onSearch }: TabProps) {
  const t = useT()
  if (view.one) {
    return (
      <>
        <WorkflowDays view={view} what="duration" />
        <TaskTrends view={view} what="duration" />
      </>
    )
  }
  return <Workflows view={view} search={search} onSearch={onSearch} lead={t('insight.slower.lead')} />
}

function Workflows({ view, search, onSearch, lead }: TabProps & { lead: string }) {
  const t = useT()
  const { language } = useSettings()
  const isNarrow = useWidth() < 640
  const sort = search.sort ?? 'slower'
  const list = useRows(workflowTrends(view.scope, sort))
  const days = daysOf(view.window.from, view.window.to)
  const most = Math.max(1, ...list.rows.map((one) => Math.abs(one.duration_change_s ?? 0)))
  const open = (one: WorkflowTrend): void => onSearch({ workflow: `${one.project}/${one.workflow}` })
  const columns: Column<WorkflowTrend>[] = [
    { key: 'workflow', title: t('common.workflow'), width: 'minmax(120px, 1.3fr)', render: (one) => <WorkflowName project={one.project} workflow={one.workflow} onOpen={() => open(one)} /> },
    { key: 'trend', title: t('insight.trend'), width: isNarrow ? '84px' : '132px', render: (one) => <Trend one={one} days={days} width={isNarrow ? 80 : 124} /> },
    { key: 'change', title: t('insight.change'), width: isNarrow ? '84px' : 'minmax(170px, 1fr)', render: (one) => (isNarrow ? <span className="num">{differenceText(one.duration_change_s)}</span> : <DifferenceBar share={(one.duration_change_s ?? 0) / most} text={<span className="two-lines"><span>{differenceText(one.duration_change_s)}</span><span className="small"><Growth now={one.now.duration_p50_s} before={one.before.duration_p50_s} better="less is better" /></span></span>} />) },
    { key: 'p50', title: t('insight.p50'), width: '132px', hide: 'narrow', render: (one) => <Pair now={secondsText(one.now.duration_p50_s)} before={secondsText(one.before.duration_p50_s)} /> },
    { key: 'p95', title: t('insight.p95'), width: '132px', hide: 'narrow', render: (one) => <Pair now={secondsText(one.now.duration_p95_s)} before={secondsText(one.before.duration_p95_s)} /> },
    { key: 'runs', title: t('insight.runs'), width: '56px', hide: 'medium', render: (one) => <span className="num">{countText(one.now.runs, language)}</span> },
    { key: 'failed', title: t('insight.failureRate'), width: '92px', hide: 'medium', render: (one) => <span className={one.now.failed ? 'num slower' : 'num dim'}>{percentText(one.now.failure_rate)}</span> },
  ]
  return (
    <>
      <div className="insight-lead"><p className="lead">{lead}</p><SortChoice value={sort} onSort={(to) => onSearch({ sort: to === 'slower' ? undefined : to })} /></div>
      <ListTable list={list} label={t('insight.tab.slower')} columns={columns} rowKey={(one) => `${one.project}/${one.workflow}`} rowHeight={50} onOpen={open} empty={<Empty title={t('insight.noRuns')}>{t('insight.noRuns.text')}</Empty>} />
    </>
  )
}

/** The median of each day, up to the 95th percentile, and what it was in the window before. */
function Trend({ one, days, width }: { one: WorkflowTrend; days: readonly string[]; width: number }) {
  const byDay = new Map(one.daily.map((day) => [day.day, day]))
  return <Spark width={width} height={34} before={one.before.duration_p50_s} values={days.map((day) => byDay.get(day)?.duration_p50_s ?? null)} />
}
