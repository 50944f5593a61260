/** Numbers by day: stacked bars, lines, or a line with the band up to another one. */
import { useSettings } from '@/shared/settings'
import { dayText, weekdayOf } from '../days'
import { NumberTable, Plot, type Geometry } from './Plot'
import { bandOf, labelledOf, lineOf, type Point, type Unit } from './scale'

export interface Series {
  text: string
  look: 'good' | 'bad' | 'ended' | 'late' | 'first' | 'second' | 'quiet'
  as: 'bar' | 'line'
  values: readonly (number | null)[]
  /** In the table and below the cursor, not in the picture. */
  isSaid?: boolean
}

interface Props {
  label: string
  days: readonly string[]
  series: readonly Series[]
  unit: Unit
  valueText: (value: number) => string
  height?: number
  /** Fills what lies between the first two lines. */
  hasBand?: boolean
  dayHead: string
}

const WEEKEND = 5
const ROOM = 54 // of the text of a day

export function DayChart({ label, days, series, unit, valueText, height, hasBand = false, dayHead }: Props) {
  const { language } = useSettings()
  const drawn = series.filter((one) => !one.isSaid)
  const bars = drawn.filter((one) => one.as === 'bar')
  const lines = drawn.filter((one) => one.as === 'line')
  const sums = days.map((_, index) => bars.reduce((sum, one) => sum + (one.values[index] ?? 0), 0))
  const highest = Math.max(0, ...sums, ...lines.flatMap((one) => one.values.map((value) => value ?? 0)))
  const textOf = (value: number | null | undefined): string => (value === null || value === undefined ? '–' : valueText(value))
  const monday = days.findIndex((day) => weekdayOf(day) === 0)
  return (
    <Plot
      label={label}
      count={days.length}
      highest={highest}
      unit={unit}
      valueText={valueText}
      {...(height ? { height } : {})}
      axis={(band) => labelledOf(days.length, band, ROOM, [1, 2, 7, 14, 28], Math.max(0, monday)).map((index) => ({ index, text: dayText(days[index] ?? '', language) }))}
      read={(index) => ({ title: dayText(days[index] ?? '', language, 'long'), items: series.map((one) => ({ text: one.text, value: textOf(one.values[index]), look: one.isSaid ? 'none' : keyOf(one) })) })}
      {...(drawn.length > 1 ? { legend: drawn.map((one) => ({ text: one.text, look: keyOf(one) })) } : {})}
      shaded={(index) => weekdayOf(days[index] ?? '') >= WEEKEND}
      table={<NumberTable heads={[dayHead, ...series.map((one) => one.text)]} rows={days.map((day, index) => [dayText(day, language, 'long'), ...series.map((one) => textOf(one.values[index]))])} />}
    >
      {(geometry, pattern) => (
        <>
          {hasBand && lines[0] && lines[1] ? <path className="plot-band" d={bandOf(pointsOf(lines[1], geometry), pointsOf(lines[0], geometry))} /> : null}
          <Bars bars={bars} count={days.length} geometry={geometry} pattern={pattern} />
          {lines.map((one) => <path key={one.text} className={`plot-line ${one.look}`} d={lineOf(pointsOf(one, geometry))} />)}
        </>
      )}
    </Plot>
  )
}

function keyOf({ as, look }: Series): string {
  return `${as}-key ${look}`
}

function pointsOf({ values }: Series, { x, y }: Geometry): Point[] {
  return values.map((value, index) => (value === null ? null : [x(index), y(value)]))
}

function Bars({ bars, count, geometry, pattern }: { bars: readonly Series[]; count: number; geometry: Geometry; pattern: string }) {
  const { band, x, y, height, top } = geometry
  const width = Math.max(1, Math.min(26, band * 0.72))
  return Array.from({ length: count }, (_, index) => {
    let below = 0
    return (
      <g key={index}>
        {bars.map((one) => {
          const value = one.values[index] ?? 0
          if (!value) return null
          const from = y(below)
          below += value
          const to = y(below)
          // What is there is seen, however little it is beside the rest.
          const tall = Math.max(from - to, one.look === 'good' ? 1 : 2.5)
          const at = Math.max(top, Math.min(to, top + height - tall))
          return <rect key={one.text} className={`plot-bar ${one.look}`} x={x(index) - width / 2} y={at} width={width} height={tall} {...(one.look === 'bad' ? { style: { fill: `url(#${pattern})` } } : {})} />
        })}
      </g>
    )
  })
}
