/** What is expected of an open run, beside what is usual. Pure. */
export interface Outlook {
  endAt: string | null
  /** How much later than usual it will end, in seconds; null: nothing is usual. */
  laterS: number | null
  /** Whether it takes longer by now than runs before it. */
  isSlow: boolean
}

interface Open {
  started_at: string | null
  expected_end_at: string | null
  late_after_at: string | null
}

/** `usualS`: how long it usually takes, in seconds; `now`: ms since 1970. */
export function outlookOf({ started_at: startedAt, expected_end_at: endAt, late_after_at: lateAfterAt }: Open, usualS: number | null, now: number): Outlook {
  const isSlow = lateAfterAt !== null && now > Date.parse(lateAfterAt)
  if (endAt === null || startedAt === null || usualS === null) return { endAt, laterS: null, isSlow }
  // What should have ended by now ends now at the earliest.
  const end = Math.max(now, Date.parse(endAt))
  return { endAt, laterS: (end - Date.parse(startedAt)) / 1000 - usualS, isSlow }
}
