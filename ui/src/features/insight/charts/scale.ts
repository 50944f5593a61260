/** Axes and lines of charts. Pure. */
const STEPS = [1, 2, 5] as const
// Steps of seconds that people count in.
const TIMES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400] as const
const LINES = 4

export type Unit = 'count' | 'seconds' | 'share'

/** Returns round values from 0 to no less than the highest. */
export function ticksOf(highest: number, unit: Unit): number[] {
  const step = stepOf(highest > 0 ? highest : unit === 'count' ? LINES : 1, unit)
  const count = Math.max(1, Math.ceil(highest / step - 1e-9))
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}

function stepOf(highest: number, unit: Unit): number {
  const least = highest / LINES
  if (unit === 'seconds') {
    const known = TIMES.find((step) => step >= least)
    if (known) return known
    return 86_400 * stepOf(highest / 86_400, 'count')
  }
  const power = 10 ** Math.floor(Math.log10(least))
  const step = power * (STEPS.find((one) => one * power >= least * (1 - 1e-9)) ?? 10)
  return unit === 'count' ? Math.max(1, step) : step
}

/** Returns seconds at an axis: round, so that units of 0 are left out: `15 min`, `1 h 30 min`. */
export function tickText(seconds: number, text: (seconds: number) => string): string {
  return seconds === 0 ? '0' : text(seconds).replace(/ 00? (s|min|h)$/, '').replace(/^(\d+)\.0 /, '$1 ').replace(/ 0(\d)/, ' $1')
}

export type Point = readonly [x: number, y: number] | null

/** Returns the path of a line; it breaks where nothing is known, and a value alone is a dot. */
export function lineOf(points: readonly Point[]): string {
  let path = ''
  points.forEach((point, index) => {
    if (!point) return
    const [x, y] = point
    const isAlone = !points[index - 1] && !points[index + 1]
    path += `${points[index - 1] ? 'L' : 'M'}${round(x)} ${round(y)}${isAlone ? 'h0.01' : ''}`
  })
  return path
}

/** Returns the paths between two lines, wherever both are known. */
export function bandOf(upper: readonly Point[], lower: readonly Point[]): string {
  let path = ''
  let part: [string, string][] = []
  const close = (): void => {
    if (part.length > 1) path += `M${part.map(([above]) => above).join('L')}L${part.map(([, below]) => below).reverse().join('L')}Z`
    part = []
  }
  upper.forEach((above, index) => {
    const below = lower[index]
    if (above && below) part.push([`${round(above[0])} ${round(above[1])}`, `${round(below[0])} ${round(below[1])}`])
    else close()
  })
  close()
  return path
}

/** Returns which places of an axis have a text, so that each has room; `first` is one of them. */
export function labelledOf(count: number, band: number, room: number, steps: readonly number[], first = 0): number[] {
  const step = steps.find((one) => one * band >= room) ?? count
  const found: number[] = []
  for (let index = ((first % step) + step) % step; index < count; index += step) found.push(index)
  return found
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10)
}
