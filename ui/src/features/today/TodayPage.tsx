/** Is the night's work all right? Lanes of runs, and what needs somebody. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Button, Segmented } from 'antd'
import { useMemo } from 'react'
import type { TodayRun } from '@/api/types'
import { StateMark, Trouble } from '@/entities/marks'
import { today as todayOf } from '@/entities/queries'
import { hasEnded, lookOf } from '@/entities/states'
import { useNamed, useSaid, useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { clockText, durationText } from '@/shared/time/format'
import { Lasting, Time, useNow, useZone } from '@/shared/time/Time'
import { Empty, Loading, PageHead, Panel } from '@/shared/ui/parts'
import { endOf, laneOf, mattersOf, ticksOf, type Lane, type Matter, type Window } from './lanes'

const HOURS = [6, 12, 24, 72] as const
const AHEAD = 0.25 // of the window lies in the future
const HOUR_MS = 3_600_000
const MOST_MATTERS = 20
const MOST_FIRES = 8
// What workflows stand for, the worst first.
const RANKS = [['late', '!', 'retry'], ['failed', '✕', 'failed'], ['waiting', '◔', 'queued'], ['running', '▶', 'running'], ['done', '✓', 'succeeded']] as const

interface Props {
  project: string | undefined
  hours: number | undefined
  onHours: (hours: number) => void
}

export function TodayPage({ project, hours = 24, onHours }: Props) {
  const t = useT()
  const now = Math.floor(useNow() / 10_000) * 10_000 // the picture moves every ten seconds
  const window = useMemo((): Window => ({ from: now - hours * HOUR_MS * (1 - AHEAD), to: now + hours * HOUR_MS * AHEAD }), [now, hours])
  // Asked for by the hour, so that the question stays the same while the window moves.
  const since = new Date(Math.floor(window.from / HOUR_MS) * HOUR_MS).toISOString()
  const until = new Date(Math.ceil(window.to / HOUR_MS) * HOUR_MS).toISOString()
  const { data, error, isPending, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(todayOf(project, since, until))
  const items = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data])
  const lanes = useMemo(() => items.map((item) => laneOf(item, window, now)).filter((lane) => lane.bars.length + lane.fires.length + lane.late.length > 0), [items, window, now])
  const matters = useMemo(() => mattersOf(items, now), [items, now])
  const next = useMemo(() => items.flatMap((item) => item.next_fires.slice(0, 1).map((fire) => ({ ...fire, item }))).sort((a, b) => (a.at < b.at ? -1 : 1)).slice(0, MOST_FIRES), [items])
  const first = data?.pages[0]
  return (
    <>
      <PageHead title={t('today.title')}>
        <Segmented<number> value={hours} onChange={onHours} options={HOURS.map((value) => ({ value, label: t('today.hours', { hours: value }) }))} aria-label={t('today.window')} />
      </PageHead>
      <div className="counters">
        {RANKS.map(([rank, glyph, tone]) => (
          <Counter key={rank} rank={rank} tone={tone} glyph={glyph} value={first?.ranks[rank] ?? 0} label={t(`today.rank.${rank}`)} />
        ))}
      </div>
      {error ? <Trouble error={error} retry={() => void refetch()} /> : null}
      <div className="today">
        <Panel title={t('today.lanes')} aside={<span className="dim small wide-only">{t('today.legend')}</span>} flush>
          {isPending ? <Loading /> : lanes.length ? <Lanes lanes={lanes} window={window} now={now} /> : <Empty title={t('today.empty')} action={<Link to="/workflows">{t('nav.workflows')}</Link>} />}
          {hasNextPage ? <div className="pad"><Button size="small" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('common.more')}</Button></div> : null}
          {first?.is_more ? <p className="dim small pad">{t('today.isMore')}</p> : null}
        </Panel>
        <div className="stack">
          <Panel title={t('today.attention')} flush>
            {matters.length ? <Attention matters={matters.slice(0, MOST_MATTERS)} /> : <p className="dim pad">{t('today.calm')}</p>}
          </Panel>
          {next.length ? (
            <Panel title={t('today.next')} flush>
              <ul className="side-list">
                {next.map(({ at, schedule_id: id, item }) => (
                  <li key={`${id}/${at}`}>
                    <Link className="cut" to="/projects/$project/workflows/$name" params={{ project: item.project, name: item.workflow }} search={{ tab: 'schedules' }}>{item.project}/{item.workflow}</Link>
                    <span className="dim small"><Time at={at} /></span>
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

function Counter({ rank, tone, glyph, value, label }: { rank: string; tone: string; glyph: string; value: number; label: string }) {
  return (
    <div className={`counter ${value ? `tone-${tone}` : ''}`} data-rank={rank}>
      <span className="glyph" aria-hidden>{glyph}</span>
      <span className="counter-value num">{value}</span>
      <span className="counter-label">{label}</span>
    </div>
  )
}

function Attention({ matters }: { matters: readonly Matter[] }) {
  const t = useT()
  const say = useSaid()
  const expected = useExpected()
  return (
    <ul className="side-list">
      {matters.map(({ key, project, workflow, run, since, said, text, isSlow }) => (
        <li key={key}>
          <div className="row">
            {key.startsWith('late') ? <span className="state tone-retry"><span className="glyph" aria-hidden>!</span><span className="hidden">{t('today.rank.late')}</span></span> : <StateMark state={run?.state ?? ''} bare />}
            {run ? (
              <Link className="cut strong" to="/runs/$id" params={{ id: String(run.id) }}>{project}/{workflow} <span className="num dim">#{run.id}</span></Link>
            ) : (
              <Link className="cut strong" to="/projects/$project/workflows/$name" params={{ project, name: workflow }} search={{ tab: 'schedules' }}>{project}/{workflow}</Link>
            )}
            <span className="grow" />
            <span className="small"><Lasting from={since} to={run && hasEnded(run.state) ? run.finished_at : null} /></span>
          </div>
          {text ? <p className="dim small clamp">{say(said, text)}</p> : null}
          {run && (isSlow || run.expected_end_at) ? <p className={isSlow ? 'slow small' : 'dim small'}>{isSlow ? <span aria-hidden>▲ </span> : null}{expected(run, isSlow).join('; ')}</p> : null}
        </li>
      ))}
    </ul>
  )
}

/** Returns what says of an open run when it will end, and since when it takes longer than usual. */
function useExpected(): (run: TodayRun, isSlow: boolean) => string[] {
  const t = useT()
  const { language } = useSettings()
  const zone = useZone()
  const clock = (at: string): string => clockText(at, zone, language)
  return (run, isSlow) => {
    const end = endOf(run, Date.now())
    return [...(isSlow && run.late_after_at ? [t('today.slow', { time: clock(run.late_after_at) })] : []), ...(end ? [t('today.eta', { time: clock(end) })] : [])]
  }
}

function Lanes({ lanes, window, now }: { lanes: readonly Lane[]; window: Window; now: number }) {
  const t = useT()
  const say = useSaid()
  const named = useNamed()
  const { language } = useSettings()
  const zone = useZone()
  const percent = (share: number): string => `${(100 * share).toFixed(2)}%`
  const place = (ms: number): number => (ms - window.from) / (window.to - window.from)
  const expected = useExpected()
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
            {lane.bars.map(({ run, to, until }) => (until === null ? null : <span key={`until/${run.id}`} className="lane-until" style={{ left: percent(to), width: percent(until - to) }} />))}
            {lane.bars.map(({ run, from, to, isSlow }) => (
              <Link
                key={run.id}
                to="/runs/$id"
                params={{ id: String(run.id) }}
                className={`lane-bar tone-${lookOf(run.state).tone}${isSlow ? ' slow' : ''}`}
                style={{ left: percent(from), width: `max(8px, ${percent(to - from)})` }}
                aria-label={[`${lane.key} #${run.id} ${named('state', run.state)}`, ...expected(run, isSlow)].join(', ')}
                title={[`#${run.id} · ${named('state', run.state)} · ${durationText((to - from) * (window.to - window.from))}`, ...expected(run, isSlow)].join(' · ')}
              />
            ))}
            {lane.late.map(({ at, place: share, said }) => (
              <span key={at} className="fire late" style={{ left: percent(share) }} title={say(said)} />
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
