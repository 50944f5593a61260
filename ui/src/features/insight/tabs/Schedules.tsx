/** In which minutes schedules fire, and which would better fire some minutes earlier or later. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Segmented } from 'antd'
import type { ScheduleMinute, ScheduleMove } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, secondsText } from '@/shared/time/seconds'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading, Panel } from '@/shared/ui/parts'
import { NumberTable, Plot } from '../charts/Plot'
import { minuteText } from '../days'
import { ShareBar, WorkflowName } from '../parts'
import { scheduleMinutes } from '../queries'
import type { TabProps } from '../view'

type Of = 'day' | 'hour'

export function Schedules({ view, onSearch }: TabProps) {
  const t = useT()
  const { data, error, refetch } = useQuery(scheduleMinutes)
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={10} />
  const { project, workflow } = view.scope
  const moves = data.moves.filter((one) => (!project || one.project === project) && (!workflow || one.workflow === workflow))
  return (
    <>
      <p className="lead">{t('insight.schedules.lead')}</p>
      {data.minutes === null ? <p className="reason">{t('insight.minutes.refused')}</p> : data.minutes.length ? <Minutes minutes={data.minutes} /> : <Empty title={t('insight.minutes.none')} />}
      <div className="insight-columns two">
        {data.minutes?.some((one) => one.is_hot) ? <Hot minutes={data.minutes} /> : null}
        <Moves moves={moves} onWorkflow={(name) => onSearch({ workflow: name, tab: 'schedules' })} />
      </div>
    </>
  )
}

function Minutes({ minutes }: { minutes: readonly ScheduleMinute[] }) {
  const t = useT()
  const { language } = useSettings()
  const [of, setOf] = useState<Of>('day')
  const own = minutes.filter((one) => one.scope === of)
  const count = of === 'day' ? 1440 : 60
  const byMinute = new Map(own.map((one) => [one.minute, one]))
  const nameOf = (minute: number): string => (of === 'day' ? minuteText(minute) : `:${String(minute).padStart(2, '0')}`)
  const text = (value: number): string => countText(value, language)
  const label = t(of === 'day' ? 'insight.minutes.day' : 'insight.minutes.hour')
  const step = of === 'day' ? 180 : 5
  const highest = Math.max(...own.map((one) => one.starts_mean), 0)
  return (
    <Panel title={label} aside={<Segmented<Of> size="small" value={of} onChange={setOf} aria-label={t('insight.minutes.of')} options={[{ value: 'day', label: t('insight.minutes.ofDay') }, { value: 'hour', label: t('insight.minutes.ofHour') }]} />}>
      <Plot
        key={of}
        label={label}
        count={count}
        highest={highest}
        unit="count"
        valueText={text}
        height={188}
        axis={(band) => { const wide = step * (band * step < 44 ? 2 : 1); return Array.from({ length: Math.ceil(count / wide) }, (_, index) => ({ index: index * wide, text: nameOf(index * wide) })) }}
        read={(minute) => {
          const one = byMinute.get(minute)
          return { title: nameOf(minute), items: [{ text: t('insight.minutes.mean'), value: text(one?.starts_mean ?? 0), look: one?.is_hot ? 'bar-key hot' : 'bar-key first' }, { text: t('insight.minutes.max'), value: text(one?.starts_max ?? 0), look: 'none' }, { text: t('insight.minutes.skew'), value: secondsText(one?.skew_p95_s), look: 'none' }] }
        }}
        legend={[{ text: t('insight.minutes.mean'), look: 'bar-key first' }, { text: t('insight.minutes.isHot'), look: 'bar-key hot' }]}
        table={<NumberTable heads={[t('insight.minute'), t('insight.minutes.mean'), t('insight.minutes.max'), t('insight.minutes.skew')]} rows={own.map((one) => [nameOf(one.minute), text(one.starts_mean), text(one.starts_max), secondsText(one.skew_p95_s)])} />}
      >
        {({ x, y, band }) => own.map((one) => {
          const width = Math.max(of === 'day' ? 2 : 1, band * 0.7)
          return (
            <g key={one.minute}>
              <rect className={one.is_hot ? 'plot-bar hot' : 'plot-bar first'} x={x(one.minute) - width / 2} width={width} y={y(one.starts_mean)} height={Math.max(1, y(0) - y(one.starts_mean))} />
              {one.is_hot ? <path className="plot-mark" d={`M${x(one.minute) - 4} ${y(one.starts_mean) - 8}h8l-4 5z`} /> : null}
            </g>
          )
        })}
      </Plot>
    </Panel>
  )
}

function Hot({ minutes }: { minutes: readonly ScheduleMinute[] }) {
  const t = useT()
  const { language } = useSettings()
  const hot = minutes.filter((one) => one.is_hot && one.scope === 'day').sort((a, b) => b.starts_mean - a.starts_mean)
  const most = hot[0]?.starts_mean ?? 1
  const columns: Column<ScheduleMinute>[] = [
    { key: 'minute', title: t('insight.minute'), width: '64px', render: (one) => <span className="num strong">{minuteText(one.minute)}</span> },
    { key: 'starts', title: t('insight.minutes.mean'), width: 'minmax(120px, 1fr)', render: (one) => <ShareBar share={one.starts_mean / most} text={countText(one.starts_mean, language)} look="late" /> },
    { key: 'skew', title: t('insight.minutes.skew'), width: '96px', render: (one) => <span className="num">{secondsText(one.skew_p95_s)}</span> },
  ]
  return <Panel title={t('insight.minutes.hot')} flush><DataTable label={t('insight.minutes.hot')} rows={hot} columns={columns} rowKey={(one) => one.minute} rowHeight={34} /></Panel>
}

function Moves({ moves, onWorkflow }: { moves: readonly ScheduleMove[]; onWorkflow: (name: string) => void }) {
  const t = useT()
  const { language } = useSettings()
  const columns: Column<ScheduleMove>[] = [
    { key: 'workflow', title: t('common.workflow'), width: 'minmax(110px, 1.2fr)', render: (one) => <WorkflowName project={one.project} workflow={one.workflow} onOpen={() => onWorkflow(`${one.project}/${one.workflow}`)} /> },
    { key: 'move', title: t('insight.move'), width: 'minmax(128px, 1fr)', render: (one) => <span className="num"><span className="dim">{minuteText(one.minute)} →</span> <strong>{minuteText(one.minute + one.move_min)}</strong></span> },
    { key: 'highest', title: t('insight.move.highest'), width: '104px', hide: 'narrow', render: (one) => (one.highest_before === null || one.highest_after === null ? <span className="dim">–</span> : <span className="num"><span className="dim">{countText(one.highest_before, language)} →</span> {countText(one.highest_after, language)}</span>) },
    { key: 'to', title: <span className="hidden">{t('workflow.schedules')}</span>, width: '92px', hide: 'narrow', render: (one) => <Link to="/projects/$project/workflows/$name" params={{ project: one.project, name: one.workflow }} search={{ tab: 'schedules' as const }} aria-label={`${t('workflow.schedules')} ${one.project}/${one.workflow}`}>{t('workflow.schedules')}</Link> },
  ]
  return (
    <Panel title={t('insight.moves')} flush>
      {moves.length ? <DataTable label={t('insight.moves')} rows={moves} columns={columns} rowKey={(one) => one.place} rowHeight={34} /> : <p className="dim pad">{t('insight.moves.none')}</p>}
    </Panel>
  )
}
