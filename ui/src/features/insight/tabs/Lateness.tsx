/** Who is late, and how well the end of a run is foretold. */
import { useQuery } from '@tanstack/react-query'
import type { WorkflowTrend } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, percentText, secondsText } from '@/shared/time/seconds'
import type { Column } from '@/shared/ui/DataTable'
import { Empty, Panel } from '@/shared/ui/parts'
import { DayChart } from '../charts/DayChart'
import { daysOf } from '../days'
import { ShareBar, SortChoice, WorkflowName } from '../parts'
import { summary as summaryOf, workflowTrends } from '../queries'
import type { TabProps } from '../view'
import { WorkflowDays } from './OneWorkflow'

export function Lateness(props: TabProps) {
  const { view } = props
  return (
    <>
      {view.one ? <WorkflowDays view={view} what="late" /> : <ByDay {...props} />}
      <Workflows {...props} />
    </>
  )
}

function ByDay({ view }: TabProps) {
  const t = useT()
  const { data } = useQuery(summaryOf(view.scope))
  if (!data?.total.runs) return null
  const days = daysOf(view.window.from, view.window.to)
  const byDay = new Map(data.daily.map((one) => [one.day, one]))
  return (
    <Panel title={t('insight.lateShareByDay')}>
      <DayChart
        label={t('insight.lateShareByDay')}
        dayHead={t('insight.day')}
        days={days}
        unit="share"
        height={160}
        valueText={percentText}
        series={[{ text: t('insight.lateRate'), look: 'late', as: 'bar', values: days.map((day) => byDay.get(day)?.late_rate ?? null) }]}
      />
    </Panel>
  )
}

function Workflows({ view, search, onSearch }: TabProps) {
  const t = useT()
  const { language } = useSettings()
  const sort = search.sort ?? 'late'
  const list = useRows(workflowTrends(view.scope, sort))
  const most = Math.max(0.001, ...list.rows.map((one) => one.now.late_rate ?? 0))
  const open = (one: WorkflowTrend): void => onSearch({ workflow: `${one.project}/${one.workflow}` })
  const columns: Column<WorkflowTrend>[] = [
    { key: 'workflow', title: t('common.workflow'), width: 'minmax(110px, 1.2fr)', render: (one) => <WorkflowName project={one.project} workflow={one.workflow} onOpen={() => open(one)} /> },
    { key: 'late', title: t('insight.lateRate'), width: 'minmax(130px, 1fr)', render: (one) => <ShareBar share={(one.now.late_rate ?? 0) / most} text={percentText(one.now.late_rate)} look="late" /> },
    { key: 'before', title: t('insight.beforeHead'), width: '76px', hide: 'narrow', render: (one) => <span className="num dim">{percentText(one.before.late_rate)}</span> },
    { key: 'count', title: t('insight.lateRuns'), width: '108px', hide: 'narrow', render: (one) => <span className="num">{t('insight.of', { count: countText(one.now.late, language), total: countText(one.now.runs, language) })}</span> },
    { key: 'error', title: t('insight.error'), width: '132px', hide: 'medium', render: ({ prediction }) => (prediction ? <span className="num">{secondsText(prediction.error_p50_s)} <span className="dim">({percentText(prediction.error_share_p50)})</span></span> : <span className="dim">–</span>) },
    { key: 'within', title: t('insight.within'), width: '112px', hide: 'medium', render: ({ prediction }) => <Within share={prediction?.within_p95 ?? null} runs={prediction?.runs ?? 0} /> },
  ]
  return (
    <>
      <div className="insight-lead"><p className="lead">{t('insight.lateness.lead')}</p>{view.one ? null : <SortChoice value={sort} onSort={(to) => onSearch({ sort: to === 'late' ? undefined : to })} />}</div>
      <ListTable list={list} label={t('insight.tab.lateness')} columns={columns} rowKey={(one) => `${one.project}/${one.workflow}`} rowHeight={44} {...(view.one ? {} : { onOpen: open })} empty={<Empty title={t('insight.noRuns')}>{t('insight.noRuns.text')}</Empty>} />
    </>
  )
}

const GOOD = 0.9 // 95 of 100 are meant to be; fewer runs tell less

function Within({ share, runs }: { share: number | null; runs: number }) {
  const t = useT()
  if (share === null) return <span className="dim">–</span>
  return <span className={share < GOOD ? 'num slower' : 'num'} title={t('insight.within.text', { runs })}>{percentText(share)}</span>
}
