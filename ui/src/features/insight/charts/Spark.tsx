/** A line without an axis, for a cell of a table: how something went over the days. */
import { bandOf, lineOf, type Point } from './scale'

interface Props {
  values: readonly (number | null)[]
  /** A second line above, up to which a band is filled. */
  upper?: readonly (number | null)[]
  /** What it was before, as a line across. */
  before?: number | null
  width?: number
  height?: number
}

const EDGE = 3

export function Spark({ values, upper = [], before = null, width = 124, height = 30 }: Props) {
  const known = [...values, ...upper, before].filter((value) => value !== null)
  if (!known.length) return null
  const most = Math.max(...known)
  const least = Math.min(...known, most * 0.6) // small changes look small
  const y = (value: number): number => EDGE + (height - 2 * EDGE) * (1 - (most > least ? (value - least) / (most - least) : 0.5))
  const x = (index: number): number => EDGE + ((width - 2 * EDGE) * index) / Math.max(1, values.length - 1)
  const points = (some: readonly (number | null)[]): Point[] => some.map((value, index) => (value === null ? null : [x(index), y(value)]))
  const last = values.findLastIndex((value) => value !== null)
  const end = values[last]
  // Days without a run are passed over: a weekly workflow has a line, too.
  const line = points(values).filter((point) => point !== null)
  const above = points(upper)
  return (
    <svg className="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden>
      {above.length ? <path className="spark-band" d={bandOf(above.filter((_, index) => values[index] !== null), line)} /> : null}
      {before === null ? null : <line className="spark-before" x1={0} x2={width} y1={y(before)} y2={y(before)} />}
      <path className="spark-line" d={lineOf(line)} />
      {end === null || end === undefined ? null : <circle className="spark-end" cx={x(last)} cy={y(end)} r={2.4} />}
    </svg>
  )
}

/** The same as bars: how often something happened. */
export function SparkBars({ values, width = 168, height = 34 }: { values: readonly number[]; width?: number; height?: number }) {
  const most = Math.max(1, ...values)
  const band = width / Math.max(1, values.length)
  return (
    <svg className="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden>
      <line className="spark-base" x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} />
      {values.map((value, index) => {
        const tall = value ? Math.max(3, ((height - 2) * value) / most) : 0
        return value ? <rect key={index} className="spark-bar" x={index * band + band * 0.12} width={Math.max(1, band * 0.76)} y={height - 1 - tall} height={tall} rx={1} /> : null
      })}
    </svg>
  )
}
