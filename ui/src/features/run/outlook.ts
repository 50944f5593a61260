/** What is expected of an open run, beside what is usual. Pure. */
export interface Outlook {
  endAt: string | null
  /** How much later than usual it will end, in seconds; null: nothing is usual. */
  laterS: number | null
  /** Whether that is no more than runs differ anyway. */
  isUsual: boolean
  /** Whether it takes longer by now than runs before it. */
  isSlow: boolean
}

interface Open {
  started_at: string | null
  expected_end_at: string | null
  late_after_at: string | null
}

/** How long it usually takes: the median, and the median distance from it; seconds. */
interface Usual {
  p50_s: number
  mad_s: number
}

/** `now`: ms since 1970. */
export function outlookOf({ started_at: startedAt, expected_end_at: endAt, late_after_at: lateAfterAt }: Open, usual: Usual | null, now: number): Outlook {
  const isSlow = lateAfterAt !== null && now > Date.parse(lateAfterAt)
  if (endAt === null || startedAt === null || usual === null) return { endAt, laterS: null, isUsual: false, isSlow }
  // What should have ended by now ends now at the earliest.
  const end = Math.max(now, Date.parse(endAt))
  const laterS = (end - Date.parse(startedAt)) / 1000 - usual.p50_s
  // As the API calls a duration usual.
  const isUsual = Math.abs(laterS) <= Math.max(3 * usual.mad_s, 0.1 * usual.p50_s, 1)
  return { endAt, laterS, isUsual, isSlow }
}
