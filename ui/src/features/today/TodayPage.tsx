/** Is the night's work all right? Lanes of runs, and what needs somebody. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Segmented } from 'antd'
import { useMemo } from 'react'
import type { Instance } from '@/api/types'
import { StateMark, Trouble } from '@/entities/marks'
import { recentRuns, schedules as schedulesOf } from '@/entities/queries'
import { hasEnded, lookOf } from '@/entities/states'
import { useNamed, useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { clockText, durationText } from '@/shared/time/format'
import { Lasting, Time, useNow, useZone } from '@/shared/time/Time'
import { Empty, Loading, PageHead, Panel } from '@/shared/ui/parts'
import { lanesOf, ticksOf, type Lane, type Window } from './lanes'

const HOURS = [6, 12, 24, 72] as const
const AHEAD = 0.25 // of the window lies in the future
const MOST_LANES = 60

interface Props {
  project: string | undefined
  hours: number | undefined
  onHours: (hours: number) => void
}

export function TodayPage({ project, hours = 24, onHours }: Props) {
  const t = useT()
  const now = Math.floor(useNow() / 10_000) * 10_000 // the picture moves every ten seconds
  const window = useMemo((): Window => ({ from: now - hours * 3_600_000 * (1 - AHEAD), to: now + hours * 3_600_000 * AHEAD }), [now, hours])
  // Asked for by the hour, so that the question stays the same while the window moves.
  const since = new Date(Math.floor(window.from / 3_600_000) * 3_600_000).toISOString()
  const runs = useQuery(recentRuns({ project, since, limit: 200 }))
  const plans = useQuery(schedulesOf(project))
  const items = useMemo(() => runs.data?.items ?? [], [runs.data])
  const lanes = useMemo(() => lanesOf(items, plans.data?.items ?? [], window, now), [items, plans.data, window, now])
  const failed = items.filter((run) => run.state === 'FAILED')
  const active = items.filter((run) => !hasEnded(run.state))
  const next = (plans.data?.items ?? []).filter((plan) => plan.enabled && plan.next_fire_at !== null).sort((a, b) => ((a.next_fire_at ?? '') < (b.next_fire_at ?? '') ? -1 : 1))
  return (
    <>
      <PageHead title={t('today.title')}>
        <Segmented<number> value={hours} onChange={onHours} options={HOURS.map((value) => ({ value, label: t('today.hours', { hours: value }) }))} aria-label={t('today.window')} />
      </PageHead>
      <div className="counters">
        <Counter tone="failed" glyph="✕" value={failed.length} label={t('today.failed')} />
        <Counter tone="running" glyph="▶" value={active.length} label={t('today.active')} />
        <Counter tone="succeeded" glyph="✓" value={items.filter((run) => run.state === 'SUCCEEDED').length} label={t('today.succeeded')} />
        <Counter tone="queued" glyph="◷" value={next.length} label={t('today.next')} />
      </div>
      {runs.error ? <Trouble error={runs.error} retry={() => void runs.refetch()} /> : null}
      <div className="today">
        <Panel title={t('today.lanes')} aside={<span className="dim small wide-only">{t('today.legend')}</span>} flush>
          {runs.isPending ? <Loading /> : lanes.length ? <Lanes lanes={lanes.slice(0, MOST_LANES)} window={window} now={now} /> : <Empty title={t('today.empty')} action={<Link to="/workflows">{t('nav.workflows')}</Link>} />}
        </Panel>
        <div className="stack">
          <Panel title={t('today.attention')} flush>
            {failed.length || active.length ? <Attention runs={[...failed, ...active].slice(0, 12)} /> : <p className="dim pad">{t('today.calm')}</p>}
          </Panel>
          {next.length ? (
            <Panel title={t('today.next')} flush>
              <ul className="side-list">
                {next.slice(0, 8).map((plan) => (
                  <li key={plan.id}>
                    <Link className="cut" to="/projects/$project/workflows/$name" params={{ project: plan.project, name: plan.workflow }} search={{ tab: 'schedules' }}>{plan.project}/{plan.workflow}</Link>
                    <span className="dim small"><Time at={plan.next_fire_at} zone={plan.timezone} /></span>
                  </li>
                ))}
              </ul>
            </Panel>
          ) : null}
        </div>
      </div>
    </>
  )
}

function Counter({ tone, glyph, value, label }: { tone: string; glyph: string; value: number; label: string }) {
  return (
    <div className={`counter ${value ? `tone-${tone}` : ''}`}>
      <span className="glyph" aria-hidden>{glyph}</span>
      <span className="counter-value num">{value}</span>
      <span className="counter-label">{label}</span>
    </div>
  )
}

function Attention({ runs }: { runs: readonly Instance[] }) {
  return (
    <ul className="side-list">
      {runs.map((run) => (
        <li key={run.id}>
          <div className="row">
            <StateMark state={run.state} bare />
            <Link className="cut strong" to="/runs/$id" params={{ id: String(run.id) }}>{run.project}/{run.workflow} <span className="num dim">#{run.id}</span></Link>
            <span className="grow" />
            <span className="small"><Lasting from={run.started_at} to={hasEnded(run.state) ? run.finished_at : null} /></span>
          </div>
          {run.reason ? <p className="dim small clamp">{run.reason}</p> : null}
        </li>
      ))}
    </ul>
  )
}

function Lanes({ lanes, window, now }: { lanes: readonly Lane[]; window: Window; now: number }) {
  const t = useT()
  const named = useNamed()
  const { language } = useSettings()
  const zone = useZone()
  const percent = (share: number): string => `${(100 * share).toFixed(2)}%`
  const place = (ms: number): number => (ms - window.from) / (window.to - window.from)
  return (
    <div className="lanes">
      <div className="lane lane-axis">
        <span className="lane-name dim small">{zone}</span>
        <span className="lane-track">
          {ticksOf(window).map((at) => (
            <span key={at} className="tick num" style={{ left: percent(place(at)) }}>{clockText(new Date(at).toISOString(), zone, language)}</span>
          ))}
        </span>
      </div>
      {lanes.map((lane) => (
        <div className="lane" key={lane.key}>
          <Link className="lane-name cut" to="/projects/$project/workflows/$name" params={{ project: lane.project, name: lane.workflow }} search={{ tab: 'runs' }} title={lane.key}>
            <span className="dim">{lane.project}/</span>{lane.workflow}
          </Link>
          <span className="lane-track">
            {ticksOf(window).map((at) => (
              <span key={at} className="grid-line" style={{ left: percent(place(at)) }} />
            ))}
            <span className="now-line" style={{ left: percent(place(now)) }} />
            {lane.bars.map(({ run, from, to }) => (
              <Link
                key={run.id}
                to="/runs/$id"
                params={{ id: String(run.id) }}
                className={`lane-bar tone-${lookOf(run.state).tone}`}
                style={{ left: percent(from), width: `max(8px, ${percent(to - from)})` }}
                aria-label={`${lane.key} #${run.id} ${named('state', run.state)}`}
                title={`#${run.id} · ${named('state', run.state)} · ${durationText((to - from) * (window.to - window.from))}`}
              />
            ))}
            {lane.fires.map(({ at, place: share }) => (
              <span key={at} className="fire" style={{ left: percent(share) }} title={t('today.fires', { time: clockText(at, zone, language) })} />
            ))}
          </span>
        </div>
      ))}
    </div>
  )
}
