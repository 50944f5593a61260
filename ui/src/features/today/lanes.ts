/** Lanes of the API on a window of time. Pure. */
import type { TodayLane, TodayRun } from '@/api/types'
import { hasEnded } from '@/entities/states'
import type { Said } from '@/shared/i18n'

export interface Bar {
  run: TodayRun
  from: number // shares of the window, 0 to 1
  to: number
  /** Up to where it should go on; null: it has ended, or nothing is known. */
  until: number | null
  /** It takes longer than is usual for it. */
  isSlow: boolean
}

export interface Lane {
  key: string
  project: string
  workflow: string
  bars: Bar[]
  fires: { at: string; place: number }[]
  late: { at: string; place: number; said: Said }[]
}

export interface Window {
  from: number // ms since 1970
  to: number
}

/** Returns what is seen of a lane. */
export function laneOf(lane: TodayLane, window: Window, now: number): Lane {
  const place = (ms: number): number => (ms - window.from) / (window.to - window.from)
  const isIn = (at: string): boolean => Date.parse(at) >= window.from && Date.parse(at) <= window.to
  const bars = lane.runs.flatMap((run) => {
    const start = Date.parse(run.started_at ?? run.created_at)
    const end = hasEnded(run.state) ? Date.parse(run.finished_at ?? run.created_at) : now
    if (end < window.from || start > window.to) return []
    const to = Math.min(1, place(Math.max(start, end)))
    const coming = endOf(run, now)
    const until = coming === null ? null : Math.min(1, place(Date.parse(coming)))
    return [{ run, from: Math.max(0, place(start)), to, until: until !== null && until > to ? until : null, isSlow: isSlow(run, now) }]
  })
  return {
    key: `${lane.project}/${lane.workflow}`,
    project: lane.project,
    workflow: lane.workflow,
    bars,
    fires: lane.next_fires.filter((fire) => isIn(fire.at)).map(({ at }) => ({ at, place: place(Date.parse(at)) })),
    late: lane.late.filter((one) => isIn(one.since)).map(({ since, said }) => ({ at: since, place: place(Date.parse(since)), said })),
  }
}

const SOON_MS = 60_000

/** Returns when an open run will end; null: nobody knows, or at any moment, which is no news. */
export function endOf(run: TodayRun, now: number): string | null {
  const end = run.expected_end_at
  return end === null || hasEnded(run.state) || Date.parse(end) < now + SOON_MS ? null : end
}

/** Says whether an open run takes longer than is usual for it. */
export function isSlow(run: TodayRun, now: number): boolean {
  return !hasEnded(run.state) && run.late_after_at !== null && now > Date.parse(run.late_after_at)
}

export interface Matter {
  key: string
  project: string
  workflow: string
  run: TodayRun | null // null: it is about a fire that has no run
  since: string | null
  said: Said | null // what the API says of it
  text: string | null // the same in English, or what has no code
  isSlow: boolean
}

/** Returns what somebody may want to look at, the worst first: what is late, has failed, takes longer than usual, waits, runs. */
export function mattersOf(lanes: readonly TodayLane[], now: number): Matter[] {
  const groups: Matter[][] = [[], [], [], [], []]
  for (const { project, workflow, late, runs } of lanes) {
    const one = { project, workflow }
    for (const { instance_id: id, schedule_id: schedule, since, said } of late) {
      groups[0]?.push({ ...one, key: `late/${project}/${workflow}/${schedule ?? ''}/${id ?? ''}/${since}`, run: runs.find((run) => run.id === id) ?? null, since, said, text: said.text, isSlow: false })
    }
    for (const run of runs) {
      const slow = isSlow(run, now)
      const group = run.state === 'FAILED' && !run.is_resolved ? 1 : hasEnded(run.state) ? undefined : slow ? 2 : run.waits_for ? 3 : 4
      if (group !== undefined) groups[group]?.push({ ...one, key: `run/${run.id}`, run, since: run.started_at, said: run.reason ? run.reason_said : run.waits_for, text: run.reason ?? run.waits_for?.text ?? null, isSlow: slow })
    }
  }
  return groups.flat()
}

/** Returns round times within the window for its axis. */
export function ticksOf(window: Window): number[] {
  const hours = (window.to - window.from) / 3_600_000
  const step = (hours <= 3 ? 0.5 : hours <= 8 ? 1 : hours <= 16 ? 2 : hours <= 30 ? 4 : 12) * 3_600_000
  const offset = new Date(window.from).getTimezoneOffset() * 60_000
  const ticks: number[] = []
  for (let at = Math.ceil((window.from - offset) / step) * step + offset; at < window.to; at += step) ticks.push(at)
  return ticks
}
