/** What waits: runs until they are admitted, their tasks in the queue. */
import type { WorkflowTrend } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, secondsText } from '@/shared/time/seconds'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'
import { Growth, Pair, SortChoice, WorkflowName } from '../parts'
import { workflowTrends } from '../queries'
import type { TabProps } from '../view'
import { TaskTrends, WorkflowDays } from './OneWorkflow'

export function Waits(props: TabProps) {
  if (!props.view.one) return <Workflows {...props} />
  return (
    <>
      <WorkflowDays view={props.view} what="wait" />
      <TaskTrends view={props.view} what="wait" />
    </>
  )
}

function Workflows({ view, search, onSearch }: TabProps) {
  const t = useT()
  const { language } = useSettings()
  const sort = search.sort ?? 'waits'
  const list = useRows(workflowTrends(view.scope, sort))
  const most = Math.max(0.001, ...list.rows.map(waitOf))
  const open = (one: WorkflowTrend): void => onSearch({ workflow: `${one.project}/${one.workflow}` })
  const columns: Column<WorkflowTrend>[] = [
    { key: 'workflow', title: t('common.workflow'), width: 'minmax(110px, 1.2fr)', render: (one) => <WorkflowName project={one.project} workflow={one.workflow} onOpen={() => open(one)} /> },
    { key: 'wait', title: t('insight.waitsInAll'), width: 'minmax(150px, 1.4fr)', render: (one) => <Stacked one={one} most={most} /> },
    { key: 'growth', title: t('insight.change'), width: '92px', hide: 'narrow', render: (one) => <Growth now={waitOf(one)} before={(one.before.admission_mean_s ?? 0) + (one.before.wait_mean_s ?? 0)} better="less is better" /> },
    { key: 'admission', title: t('insight.admissionP95'), width: '128px', hide: 'narrow', render: (one) => <Pair now={secondsText(one.now.admission_p95_s)} before={secondsText(one.before.admission_p95_s)} /> },
    { key: 'tasks', title: t('insight.waitP95'), width: '128px', hide: 'narrow', render: (one) => <Pair now={secondsText(one.now.wait_p95_s)} before={secondsText(one.before.wait_p95_s)} /> },
    { key: 'runs', title: t('insight.runs'), width: '76px', hide: 'medium', render: (one) => <span className="num">{countText(one.now.runs, language)}</span> },
  ]
  return (
    <>
      <div className="insight-lead"><p className="lead">{t('insight.waits.lead')}</p><SortChoice value={sort} onSort={(to) => onSearch({ sort: to === 'waits' ? undefined : to })} /></div>
      <ul className="plot-legend"><li><span className="key bar-key admission" aria-hidden />{t('insight.admission')}</li><li><span className="key bar-key wait" aria-hidden />{t('insight.inQueue')}</li></ul>
      <ListTable list={list} label={t('insight.tab.waits')} columns={columns} rowKey={(one) => `${one.project}/${one.workflow}`} rowHeight={50} onOpen={open} empty={<Empty title={t('insight.noRuns')}>{t('insight.noRuns.text')}</Empty>} />
    </>
  )
}

function waitOf(one: WorkflowTrend): number {
  return (one.now.admission_mean_s ?? 0) + (one.now.wait_mean_s ?? 0)
}

/** The mean wait of a run before it begins, and that of its tasks behind it. */
function Stacked({ one, most }: { one: WorkflowTrend; most: number }) {
  const admission = one.now.admission_mean_s ?? 0
  const wait = one.now.wait_mean_s ?? 0
  const width = (value: number): string => `${((100 * value) / most).toFixed(1)}%`
  return (
    <span className="share" title={`${secondsText(admission)} + ${secondsText(wait)}`}>
      <span className="share-track" aria-hidden>
        <span className="share-bar admission" style={{ width: width(admission) }} />
        <span className="share-bar wait" style={{ width: width(wait) }} />
      </span>
      <span className="num share-text">{secondsText(admission + wait)}</span>
    </span>
  )
}
