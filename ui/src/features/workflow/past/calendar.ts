/** Days of a year as weeks, and what a day was like. Pure. */
import type { Day } from '@/api/types'

export type Kind = 'none' | 'good' | 'bad' | 'missing' | 'open'

const OPEN = new Set(['QUEUED', 'RUNNING', 'PAUSING', 'PAUSED', 'STOPPING'])
const DAY_MS = 86_400_000

export interface Cell {
  date: string // YYYY-MM-DD
  week: number // column, from 0
  weekday: number // row, Monday is 0
  kind: Kind
  count: number // logical times that have a run
  day: Day | undefined
}

/** Returns what a day needs: somebody who looks (bad), a run (missing), time (open), nothing. */
export function kindOf(day: Day | undefined): Kind {
  if (!day) return 'none'
  const states = Object.entries(day.states).filter(([, count]) => count > 0)
  if (states.some(([state]) => state === 'FAILED' || state === 'STOPPED')) return 'bad'
  if (day.missing > 0) return 'missing'
  if (states.some(([state]) => OPEN.has(state))) return 'open'
  return states.length ? 'good' : 'none'
}

/** Returns a cell for each day of a year; weeks begin on Monday. */
export function yearOf(year: number, days: readonly Day[]): Cell[] {
  const known = new Map(days.map((day) => [day.date, day]))
  const first = Date.UTC(year, 0, 1)
  const offset = weekdayOf(first)
  const count = (Date.UTC(year + 1, 0, 1) - first) / DAY_MS
  return Array.from({ length: count }, (_, index) => {
    const at = first + index * DAY_MS
    const date = new Date(at).toISOString().slice(0, 10)
    const day = known.get(date)
    return {
      date,
      week: Math.floor((index + offset) / 7),
      weekday: weekdayOf(at),
      kind: kindOf(day),
      count: day ? Object.values(day.states).reduce((sum, one) => sum + one, 0) : 0,
      day,
    }
  })
}

function weekdayOf(at: number): number {
  return (new Date(at).getUTCDay() + 6) % 7
}

/** Returns the day that an arrow key leads to, or the same. */
export function neighbour(cells: readonly Cell[], index: number, key: string): number {
  const step = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -7, ArrowRight: 7, Home: -index, End: cells.length - 1 - index }[key] ?? 0
  const next = index + step
  return next >= 0 && next < cells.length ? next : index
}

/** Returns the day after one. */
export function dayAfter(date: string): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10)
}
