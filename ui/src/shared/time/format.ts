/** Times and durations as text. A time always says its zone. Pure. */

/** Returns a time in a zone: `21 Nov 2026, 06:00:00 GMT+1`. */
export function timeText(iso: string, zone: string, language: string): string {
  return format(iso, zone, language, {
    year: 'numeric',
    month: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  })
}

/** Returns the hours and minutes alone, for axes and tables that name their zone elsewhere. */
export function clockText(iso: string, zone: string, language: string, withSeconds = false): string {
  return format(iso, zone, language, { hour: '2-digit', minute: '2-digit', ...(withSeconds ? { second: '2-digit' } : {}), hourCycle: 'h23' })
}

function format(iso: string, zone: string, language: string, options: Intl.DateTimeFormatOptions): string {
  const key = `${language} ${zone} ${options.year ?? ''}${options.second ?? ''}`
  let made = formats.get(key)
  if (!made) {
    const locale = language === 'zh' ? 'zh-CN' : 'en-GB'
    try {
      made = new Intl.DateTimeFormat(locale, { ...options, timeZone: zone })
    } catch {
      made = new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' })
    }
    formats.set(key, made)
  }
  return made.format(new Date(iso))
}

// Making one takes longer than all that it writes for a page.
const formats = new Map<string, Intl.DateTimeFormat>()

/** Returns a duration in its two largest units: `1 h 04 min`, `12.3 s`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return `${minutes} min ${pad(whole % 60)} s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} min`
  return `${Math.floor(hours / 24)} d ${pad(hours % 24)} h`
}

/** Returns a number of bytes: `12.4 MB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = bytes
  let unit = 0
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`
}

/** Returns the instant at which a zone's clocks show a local time such as `2026-01-31T06:00`. */
export function instantOf(local: string, zone: string): string | null {
  const guess = Date.parse(`${local}Z`)
  if (Number.isNaN(guess)) return null
  let at = guess
  // Twice, since the offset at the first guess may be that of the other side of a change.
  for (let round = 0; round < 2; round += 1) at = guess - offsetMs(at, zone)
  return new Date(at).toISOString().replace('.000Z', 'Z')
}

function offsetMs(at: number, zone: string): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(at)
  const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value)
  const shown = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'))
  return shown - Math.floor(at / 1000) * 1000
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
