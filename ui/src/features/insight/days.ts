/** Days of UTC as the API writes them, and which of them are looked at. Pure. */
export const PRESETS = [7, 28, 90] as const
export type Preset = (typeof PRESETS)[number]
const USUAL: Preset = 28
const LONGEST = 92 // the API refuses more
const DAY_MS = 86_400_000

export interface Window {
  from: string
  to: string
  preset: Preset | null // null: other days were chosen
}

/** Returns the window of an address; `until`: the newest day that has results. */
export function windowOf({ days, from, to }: { days?: Preset | undefined; from?: string | undefined; to?: string | undefined }, until: string): Window {
  if (!from && !to) {
    const length = days ?? USUAL
    return { from: added(until, 1 - length), to: until, preset: length }
  }
  const last = to ?? (from && from > until ? from : until)
  const first = from ?? added(last, 1 - USUAL)
  if (first > last) return { from: last, to: first, preset: null } // written the wrong way round
  return { from: first < added(last, 1 - LONGEST) ? added(last, 1 - LONGEST) : first, to: last, preset: null }
}

export function added(day: string, count: number): string {
  return new Date(Date.parse(day) + count * DAY_MS).toISOString().slice(0, 10)
}

/** Returns all days of a window, both ends included. */
export function daysOf(from: string, to: string): string[] {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1
  return Array.from({ length: Math.max(0, count) }, (_, index) => added(from, index))
}

/** Returns how many days a day lies behind another one. */
export function daysBehind(day: string, today: string): number {
  return Math.round((Date.parse(today) - Date.parse(day)) / DAY_MS)
}

/** Returns a day as text: `21 Nov`, or with its weekday and year. */
export function dayText(day: string, language: string, style: 'short' | 'long' = 'short'): string {
  const options: Intl.DateTimeFormatOptions = style === 'short' ? { day: 'numeric', month: 'short' } : { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' }
  return new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { ...options, timeZone: 'UTC' }).format(new Date(`${day}T00:00:00Z`))
}

/** Returns the name of a weekday; 0: Monday. */
export function weekdayText(weekday: number, language: string, style: 'short' | 'long' = 'short'): string {
  return new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { weekday: style, timeZone: 'UTC' }).format(new Date(Date.UTC(2026, 0, 5 + weekday)))
}

/** 0: Monday. */
export function weekdayOf(day: string): number {
  return (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7
}

export function minuteText(minute: number): string {
  const shown = ((minute % 1440) + 1440) % 1440
  return `${String(Math.floor(shown / 60)).padStart(2, '0')}:${String(shown % 60).padStart(2, '0')}`
}
