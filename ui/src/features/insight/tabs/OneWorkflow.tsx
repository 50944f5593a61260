/** One workflow: its days as a chart, and its tasks. */
import { useQuery } from '@tanstack/react-query'
import { Tag, Tooltip } from 'antd'
import type { TaskTrend, WorkflowTrend } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, differenceText, percentText, secondsText } from '@/shared/time/seconds'
import { useWidth, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading, Panel } from '@/shared/ui/parts'
import { DayChart, type Series } from '../charts/DayChart'
import { Spark } from '../charts/Spark'
import { daysOf } from '../days'
import { DifferenceBar, Growth, Pair, ShareBar, Tile } from '../parts'
import { firstTrends, taskTrends } from '../queries'
import type { View } from '../view'

type What = 'duration' | 'wait' | 'late'

export function WorkflowDays({ view, what }: { view: View; what: What }) {
  const t = useT()
  const { language } = useSettings()
  const { data, error, refetch } = useQuery(firstTrends(view.scope, 'slower', 1))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={8} />
  const [one] = data.items
  if (!one) return <Empty title={t('insight.noRuns')}>{t('insight.noRuns.text')}</Empty>
  const days = daysOf(view.window.from, view.window.to)
  const byDay = new Map(one.daily.map((day) => [day.day, day]))
  const valuesOf = (of: (day: WorkflowTrend['daily'][number]) => number | null) => days.map((day) => { const found = byDay.get(day); return found ? of(found) : null })
  const { now, before, prediction } = one
  const said: Series[] = [{ text: t('insight.runs'), look: 'quiet', as: 'bar', isSaid: true, values: valuesOf((day) => day.runs) }]
  const durations: Series[] = [
    { text: t('insight.p50'), look: 'first', as: 'line', values: valuesOf((day) => day.duration_p50_s) },
    { text: t('insight.p95'), look: 'second', as: 'line', values: valuesOf((day) => day.duration_p95_s) },
  ]
  const late: Series[] = [
    { text: t('insight.inTime'), look: 'good', as: 'bar', values: valuesOf((day) => day.runs - day.late) },
    { text: t('insight.late'), look: 'late', as: 'bar', values: valuesOf((day) => day.late) },
  ]
  return (
    <>
      <div className="tiles">
        {what === 'late' ? (
          <>
            <Tile label={t('insight.lateRate')} value={percentText(now.late_rate)} now={now.late_rate} before={before.late_rate} beforeText={percentText(before.late_rate)} better="less is better" />
            <Tile label={t('insight.runs')} value={countText(now.runs, language)} now={now.runs} before={before.runs} beforeText={countText(before.runs, language)} />
            {prediction ? <Tile label={t('insight.error')} value={percentText(prediction.error_share_p50)} now={null} before={null} beforeText="" /> : null}
          </>
        ) : what === 'wait' ? (
          <>
            <Tile label={t('insight.admissionMean')} value={secondsText(now.admission_mean_s)} now={now.admission_mean_s} before={before.admission_mean_s} beforeText={secondsText(before.admission_mean_s)} better="less is better" />
            <Tile label={t('insight.waitMean')} value={secondsText(now.wait_mean_s)} now={now.wait_mean_s} before={before.wait_mean_s} beforeText={secondsText(before.wait_mean_s)} better="less is better" />
            <Tile label={t('insight.waitP95')} value={secondsText(now.wait_p95_s)} now={now.wait_p95_s} before={before.wait_p95_s} beforeText={secondsText(before.wait_p95_s)} better="less is better" />
          </>
        ) : (
          <>
            <Tile label={t('insight.p50')} value={secondsText(now.duration_p50_s)} now={now.duration_p50_s} before={before.duration_p50_s} beforeText={secondsText(before.duration_p50_s)} better="less is better" />
            <Tile label={t('insight.p95')} value={secondsText(now.duration_p95_s)} now={now.duration_p95_s} before={before.duration_p95_s} beforeText={secondsText(before.duration_p95_s)} better="less is better" />
            <Tile label={t('insight.runs')} value={countText(now.runs, language)} now={now.runs} before={before.runs} beforeText={countText(before.runs, language)} />
            <Tile label={t('insight.failureRate')} value={percentText(now.failure_rate)} now={now.failure_rate} before={before.failure_rate} beforeText={percentText(before.failure_rate)} better="less is better" />
          </>
        )}
      </div>
      {what === 'wait' ? null : (
        <Panel title={t(what === 'late' ? 'insight.lateByDay' : 'insight.durationByDay')}>
          <DayChart label={t(what === 'late' ? 'insight.lateByDay' : 'insight.durationByDay')} dayHead={t('insight.day')} days={days} unit={what === 'late' ? 'count' : 'seconds'} hasBand={what !== 'late'} valueText={(value) => (what === 'late' ? countText(value, language) : secondsText(value))} series={what === 'late' ? late : [...durations, ...said]} />
        </Panel>
      )}
    </>
  )
}

export function TaskTrends({ view, what }: { view: View; what: 'duration' | 'wait' }) {
  const t = useT()
  const { language } = useSettings()
  const isNarrow = useWidth() < 640
  const list = useRows(taskTrends(view.scope))
  const days = daysOf(view.window.from, view.window.to)
  const most = Math.max(1, ...list.rows.map((one) => Math.abs(one.duration_change_s ?? 0)))
  const gain = Math.max(0.001, ...list.rows.map((one) => one.critical?.gain_mean_s ?? 0))
  const wait = Math.max(0.001, ...list.rows.map((one) => one.now.wait_p95_s ?? 0))
  const name: Column<TaskTrend> = {
    key: 'task', title: t('insight.task'), width: 'minmax(110px, 1.1fr)',
    render: (one) => <span className="two-lines"><span className="mono strong cut" title={one.task}>{one.task}</span><span className="dim small cut">{one.type}{one.flapping ? <Flapping flapping={one.flapping} /> : null}</span></span>,
  }
  const attempts: Column<TaskTrend> = { key: 'attempts', title: t('insight.attempts'), width: '84px', hide: 'medium', render: (one) => <span className="num">{countText(one.now.attempts, language)}</span> }
  const durations: Column<TaskTrend>[] = [
    name,
    { key: 'trend', title: t('insight.trend'), width: isNarrow ? '76px' : '116px', render: (one) => <Spark width={isNarrow ? 72 : 108} height={32} before={one.before.duration_p50_s} values={valuesOf(one, days)} /> },
    { key: 'change', title: t('insight.change'), width: isNarrow ? '84px' : 'minmax(178px, 1fr)', render: (one) => (isNarrow ? <span className="num">{differenceText(one.duration_change_s)}</span> : <DifferenceBar share={(one.duration_change_s ?? 0) / most} text={<span className="two-lines"><span>{differenceText(one.duration_change_s)}</span><span className="small"><Growth now={one.now.duration_p50_s} before={one.before.duration_p50_s} better="less is better" /></span></span>} />) },
    { key: 'p50', title: t('insight.p50'), width: '132px', hide: 'narrow', render: (one) => <Pair now={secondsText(one.now.duration_p50_s)} before={secondsText(one.before.duration_p50_s)} /> },
    { key: 'gain', title: t('insight.gain'), width: 'minmax(150px, 0.9fr)', hide: 'narrow', render: (one) => (one.critical ? <ShareBar share={(one.critical.gain_mean_s ?? 0) / gain} text={secondsText(one.critical.gain_mean_s)} look="critical" /> : <span className="dim">–</span>) },
    { key: 'critical', title: t('insight.onPath'), width: '92px', hide: 'medium', render: (one) => <span className={one.critical ? 'num' : 'num dim'}>{one.critical ? percentText(one.critical.share) : '–'}</span> },
    { key: 'retries', title: t('insight.retryRate'), width: '84px', hide: 'medium', render: (one) => <span className={one.now.retries ? 'num' : 'num dim'}>{percentText(one.now.retry_rate)}</span> },
  ]
  const waits: Column<TaskTrend>[] = [
    name,
    { key: 'wait', title: t('insight.waitP95'), width: 'minmax(140px, 1.2fr)', render: (one) => <ShareBar share={(one.now.wait_p95_s ?? 0) / wait} text={secondsText(one.now.wait_p95_s)} look="wait" /> },
    { key: 'p50', title: t('insight.waitP50'), width: '120px', hide: 'narrow', render: (one) => <Pair now={secondsText(one.now.wait_p50_s)} before={secondsText(one.before.wait_p50_s)} /> },
    { key: 'mean', title: t('insight.waitMean'), width: '120px', render: (one) => <Pair now={secondsText(one.now.wait_mean_s)} before={secondsText(one.before.wait_mean_s)} /> },
    attempts,
  ]
  return (
    <Panel title={t('insight.tasks')} aside={<span className="dim small wide-only">{t(what === 'wait' ? 'insight.waits.ofTasks' : 'insight.gain.text')}</span>} flush>
      <ListTable list={list} label={t('insight.tasks')} columns={what === 'wait' ? waits : durations} rowKey={(one) => one.task} rowHeight={50} empty={<p className="dim pad">{t('insight.noRuns')}</p>} />
    </Panel>
  )
}

function valuesOf(one: TaskTrend, days: readonly string[]): (number | null)[] {
  const byDay = new Map(one.daily.map((day) => [day.day, day.duration_p50_s]))
  return days.map((day) => byDay.get(day) ?? null)
}

function Flapping({ flapping }: { flapping: NonNullable<TaskTrend['flapping']> }) {
  const t = useT()
  return <> <Tooltip title={t('insight.flapping.text', { changes: flapping.changes, runs: flapping.runs })}><Tag color="warning">{t('insight.flapping')}</Tag></Tooltip></>
}
