/** A time in the zone that the header chooses, with its zone; UTC as its title. */
import { useEffect, useState, type ReactNode } from 'react'
import { useSettings } from '../settings'
import { clockText, durationText, timeText } from './format'

let browserZone: string | undefined

/** Returns the zone to show times in. `own`: that of the workflow, where one is known. */
export function useZone(own?: string): string {
  const { zone } = useSettings()
  if (zone === 'utc') return 'UTC'
  if (zone === 'workflow' && own) return own
  return (browserZone ??= Intl.DateTimeFormat().resolvedOptions().timeZone)
}

export function Time({ at, zone, short = false }: { at: string | null; zone?: string; short?: boolean }) {
  return useTimes(zone)(at, short)
}

/** Returns what makes elements of times: for tables, whose cells are cheaper without a component each. */
export function useTimes(zone?: string): (at: string | null, short?: boolean) => ReactNode {
  const { language } = useSettings()
  const shown = useZone(zone)
  return (at, short = false) => {
    if (at === null) return <span className="dim">–</span>
    const full = timeText(at, shown, language)
    return (
      <time dateTime={at} title={`${full} · ${at}`} className="num">
        {short ? clockText(at, shown, language) : full}
      </time>
    )
  }
}

/** How long something took, or takes: then it ticks. */
export function Lasting({ from, to }: { from: string | null; to: string | null }) {
  const now = useNow(from !== null && to === null)
  if (from === null) return <span className="dim">–</span>
  const ms = (to === null ? now : Date.parse(to)) - Date.parse(from)
  return <span className="num">{durationText(ms)}</span>
}

/** Returns ms since 1970, renewed every second while `ticks`. */
export function useNow(ticks = true): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!ticks) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [ticks])
  return now
}
