/** What has changed between two texts, by lines: the shortest script of Myers. Pure. */
export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'skipped'
  text: string
  /** Numbers of the line on both sides, from 1; null where it is not there. */
  a: number | null
  b: number | null
}

const AROUND = 3 // unchanged lines that are shown beside a change
const MOST_STEPS = 4000 // beyond, the rest is shown as replaced: texts that have nothing in common

/** Returns all lines of both texts, in order. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1
  const middle = script(a.slice(start, a.length - end), b.slice(start, b.length - end))
  const found: DiffLine[] = []
  let [i, j] = [0, 0]
  const same = (): void => void found.push({ kind: 'same', text: a[i] ?? '', a: ++i, b: ++j })
  while (i < start) same()
  for (const kind of middle) {
    if (kind === 'same') same()
    else if (kind === 'removed') found.push({ kind, text: a[i] ?? '', a: ++i, b: null })
    else found.push({ kind, text: b[j] ?? '', a: null, b: ++j })
  }
  while (i < a.length) same()
  return found
}

/** Returns the lines near changes; what is left out between them is one line with its number. */
export function nearChanges(lines: readonly DiffLine[]): DiffLine[] {
  const near = new Set<number>()
  lines.forEach((line, index) => {
    if (line.kind === 'same') return
    for (let at = index - AROUND; at <= index + AROUND; at += 1) near.add(at)
  })
  const found: DiffLine[] = []
  let left = 0
  lines.forEach((line, index) => {
    if (near.has(index)) {
      if (left) found.push({ kind: 'skipped', text: String(left), a: null, b: null })
      left = 0
      found.push(line)
    } else left += 1
  })
  if (left && found.length) found.push({ kind: 'skipped', text: String(left), a: null, b: null })
  return found
}

function linesOf(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function script(a: readonly string[], b: readonly string[]): ('same' | 'added' | 'removed')[] {
  const most = a.length + b.length
  let ends = new Map<number, number>([[1, 0]])
  const trace: Map<number, number>[] = []
  for (let step = 0; step <= Math.min(most, MOST_STEPS); step += 1) {
    trace.push(new Map(ends))
    for (let k = -step; k <= step; k += 2) {
      const [left, right] = [ends.get(k - 1) ?? -1, ends.get(k + 1) ?? -1]
      let x = k === -step || (k !== step && left < right) ? right : left + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1
      ends = ends.set(k, x)
      if (x >= a.length && x - k >= b.length) return walked(trace, a.length, b.length)
    }
  }
  return [...a.map(() => 'removed' as const), ...b.map(() => 'added' as const)]
}

/** Walks back through what was reached at each step. */
function walked(trace: readonly Map<number, number>[], width: number, height: number): ('same' | 'added' | 'removed')[] {
  const found: ('same' | 'added' | 'removed')[] = []
  let [x, y] = [width, height]
  for (let step = trace.length - 1; step >= 0; step -= 1) {
    const ends = trace[step] ?? new Map<number, number>()
    const k = x - y
    const [left, right] = [ends.get(k - 1) ?? -1, ends.get(k + 1) ?? -1]
    const from = k === -step || (k !== step && left < right) ? k + 1 : k - 1
    const startX = ends.get(from) ?? 0
    const startY = startX - from
    while (x > startX && y > startY && x > 0 && y > 0) {
      found.push('same')
      x -= 1
      y -= 1
    }
    if (step === 0) break
    if (x === startX) {
      found.push('added')
      y -= 1
    } else {
      found.push('removed')
      x -= 1
    }
  }
  return found.reverse()
}
