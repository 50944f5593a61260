/** Runs of a window as lanes, one for each workflow; those that need somebody come first. Pure. */
import type { Instance, Schedule } from '@/api/types'
import { hasEnded } from '@/entities/states'

export interface Lane {
  key: string
  project: string
  workflow: string
  bars: { run: Instance; from: number; to: number }[] // shares of the window, 0 to 1
  fires: { at: string; place: number }[]
}

export interface Window {
  from: number // ms since 1970
  to: number
}

const ORDER = ['FAILED', 'STOPPED', 'PAUSED', 'QUEUED', 'RUNNING']

/** Returns the lanes of what ran, runs or will be fired within the window. */
export function lanesOf(runs: readonly Instance[], schedules: readonly Schedule[], window: Window, now: number): Lane[] {
  const lanes = new Map<string, Lane>()
  const lane = (project: string, workflow: string): Lane => {
    const key = `${project}/${workflow}`
    const found = lanes.get(key) ?? { key, project, workflow, bars: [], fires: [] }
    lanes.set(key, found)
    return found
  }
  const place = (ms: number): number => (ms - window.from) / (window.to - window.from)
  for (const run of runs) {
    const start = Date.parse(run.started_at ?? run.created_at)
    const end = hasEnded(run.state) ? Date.parse(run.finished_at ?? run.created_at) : now
    if (end < window.from || start > window.to) continue
    lane(run.project, run.workflow).bars.push({ run, from: Math.max(0, place(start)), to: Math.min(1, place(Math.max(start, end))) })
  }
  for (const { project, workflow, next_fire_times: times, enabled } of schedules) {
    for (const at of enabled ? times : []) {
      const ms = Date.parse(at)
      if (ms >= window.from && ms <= window.to) lane(project, workflow).fires.push({ at, place: place(ms) })
    }
  }
  const rank = (one: Lane): number => {
    const last = one.bars.reduce<Instance | null>((best, { run }) => (best === null || run.id > best.id ? run : best), null)
    const index = last ? ORDER.indexOf(last.state) : -1
    return index < 0 ? ORDER.length : index
  }
  return [...lanes.values()].sort((a, b) => rank(a) - rank(b) || a.key.localeCompare(b.key))
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
