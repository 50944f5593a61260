/** When a silence ends: after a while, on the next morning, or when somebody says. Pure. */
import { instantOf } from '@/shared/time/format'

export const CHOICES = ['1h', '4h', 'morning', 'own'] as const
export type Choice = (typeof CHOICES)[number]

const HOUR_MS = 3_600_000
const HOURS: Partial<Record<Choice, number>> = { '1h': 1, '4h': 4 }
export const MORNING = '08:00'

/** Returns the instant; `own`: a local time such as `2026-01-31T06:00` of the zone. Null: there is none. */
export function untilOf(choice: Choice, own: string, now: number, zone: string): string | null {
  if (choice === 'own') return own ? instantOf(own, zone) : null
  if (choice === 'morning') return instantOf(`${dayAfter(now, zone)}T${MORNING}`, zone)
  return new Date(now + (HOURS[choice] ?? 0) * HOUR_MS).toISOString()
}

/** Returns the day after the one that it is in a zone. */
function dayAfter(now: number, zone: string): string {
  const today = new Intl.DateTimeFormat('en-CA', { timeZone: zone }).format(now) // 2026-01-31
  return new Date(Date.parse(`${today}T00:00Z`) + 24 * HOUR_MS).toISOString().slice(0, 10)
}
