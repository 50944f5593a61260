/** When tasks ran: the critical path, and a time axis on which idle times are short. Pure. */
export interface Span {
  name: string
  dependsOn: readonly string[]
  start: number | null // ms since 1970
  end: number | null // null: still under way
}

/** Returns the chain of tasks that the run's end has waited for, the first first. */
export function criticalPath(spans: readonly Span[], now: number): string[] {
  const byName = new Map(spans.map((span) => [span.name, span]))
  const endOf = (span: Span): number => (span.start === null ? -Infinity : (span.end ?? now))
  const latest = (some: readonly Span[]): Span | undefined =>
    some.reduce<Span | undefined>(
      (best, span) => (endOf(span) > (best ? endOf(best) : -Infinity) ? span : best),
      undefined,
    )
  const path: string[] = []
  for (let span = latest(spans); span && path.length <= spans.length; ) {
    path.unshift(span.name)
    span = latest(span.dependsOn.flatMap((name) => byName.get(name) ?? []))
  }
  return path
}

export interface Axis {
  length: number // in drawn ms
  /** Returns the place of a time, in drawn ms. */
  at: (time: number) => number
  /** The idle times that are drawn short: where, and how long they were. */
  gaps: { at: number; width: number; lasted: number }[]
}

const LEAST_GAP_MS = 30_000
const GAP_SHARE = 0.15 // of what was busy: idle times beyond are cut
const DRAWN_SHARE = 0.04

/** Returns an axis from the first start to the last end. */
export function axisOf(spans: readonly Span[], now: number): Axis {
  const busy = merged(spans, now)
  const total = busy.reduce((sum, [start, end]) => sum + end - start, 0)
  const least = Math.max(LEAST_GAP_MS, total * GAP_SHARE)
  const pieces: { from: number; to: number; at: number; width: number }[] = []
  const gaps: Axis['gaps'] = []
  let at = 0
  let previous: number | null = null
  const add = (from: number, to: number, width: number): void => {
    pieces.push({ from, to, at, width })
    at += width
  }
  for (const [start, end] of busy) {
    if (previous !== null) {
      const lasted = start - previous
      const isCut = lasted > least
      const width = isCut ? Math.max(total * DRAWN_SHARE, 1) : lasted
      if (isCut) gaps.push({ at, width, lasted })
      add(previous, start, width)
    }
    add(start, end, end - start)
    previous = end
  }
  const place = (time: number): number => {
    const piece = pieces.find(({ to }) => time <= to) ?? pieces.at(-1)
    if (!piece) return 0
    const share = piece.to === piece.from ? 0 : (time - piece.from) / (piece.to - piece.from)
    return piece.at + Math.min(1, Math.max(0, share)) * piece.width
  }
  return { length: Math.max(at, 1), at: place, gaps }
}

function merged(spans: readonly Span[], now: number): [number, number][] {
  const busy: [number, number][] = []
  const sorted = spans
    .flatMap(({ start, end }): [number, number][] => (start === null ? [] : [[start, end ?? now]]))
    .sort((a, b) => a[0] - b[0])
  for (const [start, end] of sorted) {
    const last = busy.at(-1)
    if (last && start <= last[1]) last[1] = Math.max(last[1], end)
    else busy.push([start, Math.max(start, end)])
  }
  return busy
}
