/** Cron expressions as fields that people choose, and back. Pure. What they mean the server says. */
export type Rhythm =
  | { kind: 'minutes'; every: number }
  | { kind: 'hours'; every: number; minute: number }
  | { kind: 'days'; hour: number; minute: number }
  | { kind: 'weekdays'; days: readonly number[]; hour: number; minute: number } // 1: Sunday, as in Quartz
  | { kind: 'months'; day: number | 'L'; hour: number; minute: number }
  | { kind: 'other' }

const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

/** Returns what an expression says, as far as there are fields for it. */
export function rhythmOf(cron: string): Rhythm {
  const parts = cron.trim().split(/\s+/)
  const isUnix = parts.length === 5
  if (!isUnix && parts.length !== 6 && !(parts.length === 7 && parts[6] === '*')) return { kind: 'other' }
  const [second = '', minute = '', hour = '', day = '', month = '', week = ''] = isUnix ? ['0', ...parts] : parts
  if (second !== '0' || month !== '*') return { kind: 'other' }
  const any = (text: string): boolean => text === '*' || text === '?'
  const m = whole(minute, 59)
  const h = whole(hour, 23)
  if (any(day) && any(week)) {
    const minutes = /^(?:\*|0)\/(\d+)$/.exec(minute)
    if (minutes && hour === '*') return { kind: 'minutes', every: Number(minutes[1]) }
    if (minute === '*' && hour === '*') return { kind: 'minutes', every: 1 }
    const hours = hour === '*' ? 1 : Number(/^(?:\*|0)\/(\d+)$/.exec(hour)?.[1] ?? 0)
    if (m !== null && hours) return { kind: 'hours', every: hours, minute: m }
    if (m !== null && h !== null) return { kind: 'days', hour: h, minute: m }
  }
  if (m === null || h === null) return { kind: 'other' }
  if (any(day) && !any(week)) {
    const days = daysOf(week, isUnix)
    return days ? { kind: 'weekdays', days, hour: h, minute: m } : { kind: 'other' }
  }
  const date = day === 'L' ? 'L' : whole(day, 31)
  return any(week) && date !== null && date !== 0 ? { kind: 'months', day: date, hour: h, minute: m } : { kind: 'other' }
}

function whole(text: string, most: number): number | null {
  return /^\d{1,2}$/.test(text) && Number(text) <= most ? Number(text) : null
}

function daysOf(text: string, isUnix: boolean): number[] | null {
  const number = (one: string): number | null => {
    const named = DAYS.indexOf(one.toUpperCase())
    if (named >= 0) return named + 1
    if (!/^\d$/.test(one)) return null
    const value = Number(one)
    return isUnix ? (value % 7) + 1 : value >= 1 && value <= 7 ? value : null
  }
  const found: number[] = []
  for (const part of text.split(',')) {
    const [from, to = from, ...rest] = part.split('-').map(number)
    if (rest.length || from === null || from === undefined || to === null || to === undefined || to < from) return null
    for (let day = from; day <= to; day += 1) found.push(day)
  }
  return [...new Set(found)].sort((a, b) => a - b)
}

/** Returns the Quartz expression of a rhythm; null: it has none of its own. */
export function cronOf(rhythm: Rhythm): string | null {
  switch (rhythm.kind) {
    case 'minutes':
      return rhythm.every === 1 ? '0 * * * * ?' : `0 0/${rhythm.every} * * * ?`
    case 'hours':
      return rhythm.every === 1 ? `0 ${rhythm.minute} * * * ?` : `0 ${rhythm.minute} 0/${rhythm.every} * * ?`
    case 'days':
      return `0 ${rhythm.minute} ${rhythm.hour} * * ?`
    case 'weekdays':
      return `0 ${rhythm.minute} ${rhythm.hour} ? * ${rhythm.days.map((day) => DAYS[day - 1]).join(',')}`
    case 'months':
      return `0 ${rhythm.minute} ${rhythm.hour} ${rhythm.day} * ?`
    default:
      return null
  }
}

/** Returns a rhythm of another kind that keeps the time of day. */
export function turned(rhythm: Rhythm, kind: Rhythm['kind']): Rhythm {
  const hour = 'hour' in rhythm ? rhythm.hour : 6
  const minute = 'minute' in rhythm ? rhythm.minute : 0
  switch (kind) {
    case 'minutes':
      return { kind, every: 15 }
    case 'hours':
      return { kind, every: 1, minute }
    case 'days':
      return { kind, hour, minute }
    case 'weekdays':
      return { kind, days: [2, 3, 4, 5, 6], hour, minute }
    case 'months':
      return { kind, day: 1, hour, minute }
    default:
      return { kind: 'other' }
  }
}
