/** How all of it goes: totals beside the window before, each day, and what has changed most. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Button } from 'antd'
import type { Summary, Totals } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, differenceText, percentText, secondsText } from '@/shared/time/seconds'
import { Empty, Loading, Panel } from '@/shared/ui/parts'
import { DayChart } from '../charts/DayChart'
import { Spark, SparkBars } from '../charts/Spark'
import { daysOf } from '../days'
import { Growth, Tile, WorkflowName } from '../parts'
import { failures as failuresOf, firstTrends, summary as summaryOf } from '../queries'
import type { InsightTab, TabProps } from '../view'

const FIRST = 5
const TRIGGERS = ['schedule', 'backfill', 'parent', 'rerun', 'request'] as const

export function Overview({ view, onSearch, onTab }: TabProps & { onTab: (tab: InsightTab) => void }) {
  const t = useT()
  const { data, error, refetch } = useQuery(summaryOf(view.scope))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={12} />
  if (!data.total.runs && !data.total.attempts) return <Empty title={t('insight.noRuns')}>{t('insight.noRuns.text')}</Empty>
  return (
    <>
      <Tiles data={data} days={daysOf(view.window.from, view.window.to)} />
      <ByDay data={data} days={daysOf(view.window.from, view.window.to)} />
      <div className="insight-columns">
        <Changed view={view} onOpen={(workflow) => onSearch({ workflow, tab: 'slower' })} onAll={() => onTab('slower')} />
        <Causes view={view} onOpen={(cause) => onSearch({ cause, tab: 'failures' })} onAll={() => onTab('failures')} />
        <Triggers total={data.total} />
      </div>
    </>
  )
}

function Tiles({ data, days }: { data: Summary; days: readonly string[] }) {
  const t = useT()
  const { language } = useSettings()
  const { total, before } = data
  const byDay = new Map(data.daily.map((one) => [one.day, one]))
  const spark = (of: (one: Totals) => number | null) => <Spark values={days.map((day) => { const one = byDay.get(day); return one ? of(one) : null })} width={76} height={22} />
  const count = (value: number): string => countText(value, language)
  return (
    <div className="tiles">
      <Tile label={t('insight.runs')} value={count(total.runs)} now={total.runs} before={before.runs} beforeText={count(before.runs)}>{spark((one) => one.runs)}</Tile>
      <Tile label={t('insight.failureRate')} value={percentText(total.failure_rate)} now={total.failure_rate} before={before.failure_rate} beforeText={percentText(before.failure_rate)} better="less is better">{spark((one) => one.failure_rate)}</Tile>
      <Tile label={t('insight.lateRate')} value={percentText(total.late_rate)} now={total.late_rate} before={before.late_rate} beforeText={percentText(before.late_rate)} better="less is better">{spark((one) => one.late_rate)}</Tile>
      <Tile label={t('insight.retryRate')} value={percentText(total.retry_rate)} now={total.retry_rate} before={before.retry_rate} beforeText={percentText(before.retry_rate)} better="less is better">{spark((one) => one.retry_rate)}</Tile>
      <Tile label={t('insight.durationMean')} value={secondsText(total.duration_mean_s)} now={total.duration_mean_s} before={before.duration_mean_s} beforeText={secondsText(before.duration_mean_s)} better="less is better">{spark((one) => one.duration_mean_s)}</Tile>
      <Tile label={t('insight.waitMean')} value={secondsText(total.wait_mean_s)} now={total.wait_mean_s} before={before.wait_mean_s} beforeText={secondsText(before.wait_mean_s)} better="less is better">{spark((one) => one.wait_mean_s)}</Tile>
      <Tile label={t('insight.attempts')} value={count(total.attempts)} now={total.attempts} before={before.attempts} beforeText={count(before.attempts)}>{spark((one) => one.attempts)}</Tile>
      <Tile label={t('insight.busy')} value={secondsText(total.busy_s)} now={total.busy_s} before={before.busy_s} beforeText={secondsText(before.busy_s)}>{spark((one) => one.busy_s)}</Tile>
    </div>
  )
}

function ByDay({ data, days }: { data: Summary; days: readonly string[] }) {
  const t = useT()
  const { language } = useSettings()
  const byDay = new Map(data.daily.map((one) => [one.day, one]))
  const valuesOf = (of: (one: Totals) => number | null) => days.map((day) => { const one = byDay.get(day); return one ? of(one) : null })
  return (
    <Panel title={t('insight.runsByDay')}>
      <DayChart
        label={t('insight.runsByDay')}
        dayHead={t('insight.day')}
        days={days}
        unit="count"
        height={232}
        valueText={(value) => countText(value, language)}
        series={[
          { text: t('insight.succeeded'), look: 'good', as: 'bar', values: valuesOf((one) => one.succeeded) },
          { text: t('insight.stopped'), look: 'ended', as: 'bar', values: valuesOf((one) => one.stopped) },
          { text: t('insight.failed'), look: 'bad', as: 'bar', values: valuesOf((one) => one.failed) },
          { text: t('insight.late'), look: 'late', as: 'bar', isSaid: true, values: valuesOf((one) => one.late) },
        ]}
      />
    </Panel>
  )
}

function Changed({ view, onOpen, onAll }: { view: TabProps['view']; onOpen: (workflow: string) => void; onAll: () => void }) {
  const t = useT()
  const { data } = useQuery(firstTrends(view.scope, 'slower', FIRST))
  const slower = data?.items.filter((one) => (one.duration_change_s ?? 0) > 0) ?? []
  return (
    <Panel title={t('insight.slowerThan')} aside={<Button size="small" type="link" onClick={onAll}>{t('insight.all')}</Button>}>
      {data && !slower.length ? <p className="dim">{t('insight.nothingSlower')}</p> : null}
      <ul className="insight-list">
        {slower.map((one) => (
          <li key={`${one.project}/${one.workflow}`}>
            <WorkflowName project={one.project} workflow={one.workflow} onOpen={() => onOpen(`${one.project}/${one.workflow}`)} />
            <Spark values={one.daily.map((day) => day.duration_p50_s)} before={one.before.duration_p50_s} width={84} height={24} />
            <span className="num strong">{differenceText(one.duration_change_s)}</span>
            <span className="small insight-growth"><Growth now={one.now.duration_p50_s} before={one.before.duration_p50_s} better="less is better" /></span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function Causes({ view, onOpen, onAll }: { view: TabProps['view']; onOpen: (cause: string) => void; onAll: () => void }) {
  const t = useT()
  const { language } = useSettings()
  const { data } = useInfiniteQuery(failuresOf(view.scope, FIRST))
  const groups = data?.pages[0]?.items ?? []
  const days = daysOf(view.window.from, view.window.to)
  return (
    <Panel title={t('insight.causes')} aside={<Button size="small" type="link" onClick={onAll}>{t('insight.all')}</Button>}>
      {data && !groups.length ? <p className="dim">{t('insight.noFailures')}</p> : null}
      <ul className="insight-list">
        {groups.map((one) => {
          const byDay = new Map(one.by_day.map((day) => [day.day, day.count]))
          return (
            <li key={one.fingerprint}>
              <button type="button" className="link mono cut insight-name" title={one.sample} onClick={() => onOpen(one.fingerprint)}>{one.sample}</button>
              <SparkBars values={days.map((day) => byDay.get(day) ?? 0)} width={84} height={20} />
              <span className="num strong">{countText(one.count, language)}</span>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}

/** What started the runs. */
function Triggers({ total }: { total: Totals }) {
  const t = useT()
  const { language } = useSettings()
  const known = TRIGGERS.filter((trigger) => total.by_trigger[trigger])
  const all = known.reduce((sum, trigger) => sum + (total.by_trigger[trigger] ?? 0), 0)
  if (!all) return null
  return (
    <Panel title={t('insight.triggers')}>
      <ul className="insight-list">
        {known.map((trigger) => {
          const count = total.by_trigger[trigger] ?? 0
          return (
            <li key={trigger}>
              <span className="insight-name cut">{t(`insight.trigger.${trigger}`)}</span>
              <span className="share-track wide" aria-hidden><span className="share-bar" style={{ width: `${((100 * count) / all).toFixed(1)}%` }} /></span>
              <span className="num strong">{countText(count, language)}</span>
              <span className="num dim small insight-growth">{percentText(count / all)}</span>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}
