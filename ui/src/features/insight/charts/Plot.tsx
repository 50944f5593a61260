/**
 * The frame of every chart over an axis of days, hours or minutes: grid, texts, a cursor, its table.
 * The cursor follows the pointer and the arrow keys; what it says is read to those who see nothing.
 */
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react'
import { useT } from '@/shared/i18n'
import { ticksOf, tickText, type Unit } from './scale'

export interface Geometry {
  left: number
  top: number
  width: number
  height: number
  band: number // of one place
  x: (index: number) => number // its middle
  y: (value: number) => number
}

export interface Said {
  text: string
  value: string
  look?: string // class of its mark
}

interface Props {
  label: string
  count: number
  highest: number
  unit: Unit
  valueText: (value: number) => string
  /** The places that have a text on the axis. */
  axis: (band: number) => readonly { index: number; text: string }[]
  /** What the cursor says at a place. */
  read: (index: number) => { title: string; items: readonly Said[] }
  legend?: readonly { text: string; look: string }[]
  height?: number
  shaded?: ((index: number) => boolean) | undefined
  table: ReactNode
  children: (geometry: Geometry, patternId: string) => ReactNode
}

const BOTTOM = 24
const TOP = 8
const RIGHT = 8

export function Plot({ label, count, highest, unit, valueText, axis, read, legend, height = 200, shaded, table, children }: Props) {
  const t = useT()
  const pattern = useId()
  const [box, width] = useBoxWidth()
  const [at, setAt] = useState<number | null>(null)
  const ticks = useMemo(() => ticksOf(highest, unit), [highest, unit])
  const top = ticks.at(-1) ?? 1
  const tickOf = (tick: number): string => (unit === 'seconds' ? tickText(tick, valueText) : valueText(tick))
  const left = Math.max(28, 10 + 6.3 * Math.max(...ticks.map((tick) => tickOf(tick).length)))
  const inner = Math.max(40, width - left - RIGHT)
  const band = inner / Math.max(1, count)
  const geometry: Geometry = {
    left, top: TOP, width: inner, height: height - TOP - BOTTOM, band,
    x: (index) => left + (index + 0.5) * band,
    y: (value) => TOP + (height - TOP - BOTTOM) * (1 - value / top),
  }
  const shown = at === null ? null : Math.min(at, count - 1)
  const said = read(shown ?? count - 1)
  const move = (event: KeyboardEvent): void => {
    const last = count - 1
    const next = { ArrowLeft: (shown ?? count) - 1, ArrowRight: (shown ?? -1) + 1, Home: 0, End: last, PageUp: (shown ?? count) - 7, PageDown: (shown ?? -1) + 7 }[event.key]
    if (event.key === 'Escape') setAt(null)
    if (next === undefined) return
    event.preventDefault()
    setAt(Math.min(last, Math.max(0, next)))
  }
  const point = (event: PointerEvent): void => {
    const { left: edge } = event.currentTarget.getBoundingClientRect()
    const index = Math.floor((event.clientX - edge - left) / band)
    setAt(index < 0 || index >= count ? null : index)
  }
  return (
    <div className="plot">
      {legend ? <Legend items={legend} /> : null}
      <div
        ref={box}
        className="plot-box"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={1}
        aria-valuemax={Math.max(1, count)}
        aria-valuenow={(shown ?? count - 1) + 1}
        aria-valuetext={`${said.title}: ${said.items.map((one) => `${one.text} ${one.value}`).join(', ')}`}
        onKeyDown={move}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
      >
        <svg width={width} height={height} aria-hidden className="plot-picture">
          <Hatch id={pattern} />
          {shaded ? Array.from({ length: count }, (_, index) => (shaded(index) ? <rect key={index} className="plot-shade" x={left + index * band} y={TOP} width={band} height={geometry.height} /> : null)) : null}
          {ticks.map((tick) => (
            <g key={tick}>
              <line className={tick === 0 ? 'plot-base' : 'plot-grid'} x1={left} x2={width - RIGHT} y1={geometry.y(tick)} y2={geometry.y(tick)} />
              <text className="plot-text" x={left - 6} y={geometry.y(tick) + 4} textAnchor="end">{tickOf(tick)}</text>
            </g>
          ))}
          {axis(band).map(({ index, text }) => (
            <text key={index} data-when className="plot-text" x={geometry.x(index)} y={height - 6} textAnchor={placed(geometry.x(index), width, text.length)}>{text}</text>
          ))}
          {shown === null ? null : <rect className="plot-cursor" x={geometry.x(shown) - Math.max(band, 3) / 2} y={TOP} width={Math.max(band, 3)} height={geometry.height} />}
          {children(geometry, pattern)}
        </svg>
        {shown === null ? null : (
          <div className="plot-said" style={geometry.x(shown) > width / 2 ? { right: width - geometry.x(shown) + band / 2 + 6 } : { left: geometry.x(shown) + band / 2 + 6 }}>
            <p className="strong num" data-when>{said.title}</p>
            {said.items.map((one) => (
              <p key={one.text} className="plot-said-line"><span className={`key ${one.look ?? ''}`} aria-hidden /><span>{one.text}</span><span className="num">{one.value}</span></p>
            ))}
          </div>
        )}
      </div>
      <details className="more plot-table"><summary>{t('insight.asTable')}</summary><div className="plot-table-box" tabIndex={0} role="group" aria-label={label}>{table}</div></details>
    </div>
  )
}

/** Texts at the edges stay within. */
function placed(x: number, width: number, length: number): 'start' | 'middle' | 'end' {
  const half = 3.2 * length
  return x + half > width ? 'end' : x - half < 0 ? 'start' : 'middle'
}

function Legend({ items }: { items: readonly { text: string; look: string }[] }) {
  return (
    <ul className="plot-legend">
      {items.map((one) => (
        <li key={one.text}><span className={`key ${one.look}`} aria-hidden />{one.text}</li>
      ))}
    </ul>
  )
}

/** What failed is hatched, so that it is told by more than its colour. */
function Hatch({ id }: { id: string }) {
  return (
    <pattern id={id} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="6" height="6" className="hatch-ground" />
      <rect width="2.4" height="6" className="hatch-line" />
    </pattern>
  )
}

/** Returns a ref and the width of what it is put on, in CSS pixels. */
export function useBoxWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(640)
  useEffect(() => {
    const element = box.current
    if (!element) return
    const measure = (): void => setWidth(Math.max(120, Math.floor(element.clientWidth)))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return [box, width]
}

/** A plain table of numbers, as what stands behind a chart. */
export function NumberTable({ heads, rows }: { heads: readonly string[]; rows: readonly (readonly string[])[] }) {
  return (
    <table className="numbers">
      <thead><tr>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
      <tbody>{rows.map((row) => <tr key={row[0]}>{row.map((cell, index) => (index ? <td key={index} className="num">{cell}</td> : <th key={index} scope="row" data-when>{cell}</th>))}</tr>)}</tbody>
    </table>
  )
}
