/** How full the cluster is: hours of the week, workers, and what the next days will need. */
import { useQuery } from '@tanstack/react-query'
import { Segmented, Select } from 'antd'
import type { Forecast, InsightLoad, LoadCell, WorkerLoad } from '@/api/types'
import { Trouble, useRefusal } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, percentText, secondsText } from '@/shared/time/seconds'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading, Panel } from '@/shared/ui/parts'
import { HeatMap } from '../charts/HeatMap'
import { NumberTable, Plot } from '../charts/Plot'
import { bandOf, lineOf, type Point } from '../charts/scale'
import { dayText, weekdayOf, weekdayText } from '../days'
import { ShareBar } from '../parts'
import { load as loadOf } from '../queries'
import { MEASURES, type Measure, type TabProps } from '../view'

export function Load(props: TabProps) {
  const t = useT()
  const refusal = useRefusal('cluster.read')
  if (refusal) return <Empty title={t('insight.load.refused')}>{t('insight.load.refused.text')}</Empty>
  return <Seen {...props} />
}

function Seen({ view, search, onSearch }: TabProps) {
  const t = useT()
  const { data, error, refetch } = useQuery(loadOf(view.window.from, view.window.to))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={12} />
  const groups = [...new Set([...data.groups.map((one) => one.worker_group), ...data.forecast.map((one) => one.worker_group)])]
  if (!groups.length && !data.workers.length) return <Empty title={t('insight.noLoad')}>{t('insight.noRuns.text')}</Empty>
  const group = search.group && groups.includes(search.group) ? search.group : busiestOf(data) ?? groups[0] ?? ''
  return (
    <>
      <div className="insight-lead">
        <p className="lead">{view.scope.project ? t('insight.load.all') : t('insight.load.lead')}</p>
        {groups.length > 1 ? <Select size="small" className="insight-sort" aria-label={t('insight.group')} value={group} onChange={(to: string) => onSearch({ group: to })} options={groups.map((value) => ({ value, label: value }))} /> : null}
      </div>
      <Week data={data} group={group} measure={search.measure ?? 'needed_max'} onMeasure={(measure) => onSearch({ measure: measure === 'needed_max' ? undefined : measure })} />
      <div className="insight-columns two">
        <Coming data={data} group={group} />
        <Workers workers={data.workers} />
      </div>
    </>
  )
}

function busiestOf({ groups }: InsightLoad): string | undefined {
  const sums = groups.map((one) => ({ group: one.worker_group, sum: one.cells.reduce((sum, cell) => sum + cell.running_mean, 0) }))
  return sums.sort((a, b) => b.sum - a.sum)[0]?.group
}

function Week({ data, group, measure, onMeasure }: { data: InsightLoad; group: string; measure: Measure; onMeasure: (measure: Measure) => void }) {
  const t = useT()
  const { language } = useSettings()
  const cells = data.groups.find((one) => one.worker_group === group)?.cells ?? []
  const text = (value: number): string => countText(value, language)
  const said = (cell: LoadCell): string =>
    t('insight.load.cell', {
      day: weekdayText(cell.weekday, language, 'long'), from: hourText(cell.hour), to: hourText(cell.hour + 1), days: cell.days,
      mean: text(cell.running_mean), max: text(cell.running_max), waiting: text(cell.waiting_max), needed: text(cell.needed_max),
    })
  return (
    <Panel title={t('insight.load.week', { group })} aside={<span className="scrolls"><Segmented<Measure> size="small" value={measure} onChange={onMeasure} aria-label={t('insight.load.measure')} options={MEASURES.map((value) => ({ value, label: t(`insight.measure.${value}`) }))} /></span>}>
      {cells.length ? (
        <HeatMap label={`${t('insight.load.week', { group })}: ${t(`insight.measure.${measure}`)}`} hint={t('insight.load.hint')} valueText={text} cells={cells.map((cell) => ({ weekday: cell.weekday, hour: cell.hour, value: cell[measure], said: said(cell) }))} />
      ) : (
        <p className="dim">{t('insight.noLoad')}</p>
      )}
    </Panel>
  )
}

function hourText(hour: number): string {
  return `${String(hour % 24).padStart(2, '0')}:00`
}

/** The next seven days, hour by hour: what is expected, and what is enough in 95 of 100 such hours. */
function Coming({ data, group }: { data: InsightLoad; group: string }) {
  const t = useT()
  const { language } = useSettings()
  const hours = data.forecast.filter((one) => one.worker_group === group).sort((a, b) => (a.forecast_day === b.forecast_day ? a.hour - b.hour : a.forecast_day < b.forecast_day ? -1 : 1))
  if (!hours.length) return <Panel title={t('insight.coming')}><p className="dim">{t('insight.coming.none')}</p></Panel>
  const text = (value: number): string => countText(value, language)
  const [first] = hours
  const points = (of: (one: Forecast) => number, x: (index: number) => number, y: (value: number) => number): Point[] => hours.map((one, index) => [x(index), y(of(one))])
  const label = t('insight.coming')
  return (
    <Panel title={label}>
      <Plot
        label={label}
        count={hours.length}
        highest={Math.max(...hours.map((one) => Math.max(one.slots, one.expected)))}
        unit="count"
        valueText={text}
        axis={() => hours.flatMap((one, index) => (one.hour === 12 ? [{ index, text: `${weekdayText(weekdayOf(one.forecast_day), language)} ${dayText(one.forecast_day, language)}`.slice(0, hours.length > 120 ? 3 : 12) }] : []))}
        read={(index) => {
          const one = hours[index] ?? hours[0]
          return one ? { title: `${dayText(one.forecast_day, language, 'long')}, ${hourText(one.hour)}`, items: [{ text: t('insight.coming.slots'), value: text(one.slots), look: 'line-key second' }, { text: t('insight.coming.expected'), value: text(one.expected), look: 'line-key first' }] } : { title: '', items: [] }
        }}
        legend={[{ text: t('insight.coming.expected'), look: 'line-key first' }, { text: t('insight.coming.slots'), look: 'line-key second' }]}
        shaded={(index) => weekdayOf(hours[index]?.forecast_day ?? '') % 2 === 1}
        table={<NumberTable heads={[t('insight.hour'), t('insight.coming.slots'), t('insight.coming.expected')]} rows={hours.map((one) => [`${dayText(one.forecast_day, language, 'long')}, ${hourText(one.hour)}`, text(one.slots), text(one.expected)])} />}
      >
        {({ x, y }) => (
          <>
            <path className="plot-band" d={bandOf(points((one) => one.slots, x, y), points((one) => one.expected, x, y))} />
            <path className="plot-line second" d={lineOf(points((one) => one.slots, x, y))} />
            <path className="plot-line first" d={lineOf(points((one) => one.expected, x, y))} />
          </>
        )}
      </Plot>
      <p className="dim small">{first && first.tested_hours !== null ? t('insight.coming.tested', { hours: countText(first.tested_hours, language), error: text(first.error_p50 ?? 0), share: percentText(first.within_p95) }) : t('insight.coming.untested')}</p>
    </Panel>
  )
}

function Workers({ workers }: { workers: readonly WorkerLoad[] }) {
  const t = useT()
  const { language } = useSettings()
  const columns: Column<WorkerLoad>[] = [
    { key: 'worker', title: t('common.worker'), width: 'minmax(100px, 1fr)', render: (one) => <span className="mono cut" title={one.worker}>{one.worker}</span> },
    { key: 'used', title: t('insight.utilisation'), width: 'minmax(120px, 1fr)', render: (one) => <ShareBar share={one.utilisation ?? 0} text={percentText(one.utilisation)} /> },
    { key: 'attempts', title: t('insight.attempts'), width: '76px', hide: 'narrow', render: (one) => <span className="num">{countText(one.attempts, language)}</span> },
    { key: 'lost', title: t('insight.lost'), width: '52px', hide: 'medium', render: (one) => <span className={one.lost ? 'num slower' : 'num dim'}>{one.lost}</span> },
    { key: 'busy', title: t('insight.busy'), width: '92px', hide: 'medium', render: (one) => <span className="num">{secondsText(one.busy_s)}</span> },
  ]
  return (
    <Panel title={t('insight.workers')} flush>
      {workers.length ? <DataTable label={t('insight.workers')} rows={workers} columns={columns} rowKey={(one) => one.worker} rowHeight={34} /> : <p className="dim pad">{t('insight.noLoad')}</p>}
    </Panel>
  )
}
