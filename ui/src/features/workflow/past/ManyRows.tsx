/**
 * The cells of a grid of many tasks, painted on a canvas that stays while the grid is scrolled.
 *
 * As elements of the page, rows that come and go take 20 ms of processor time for each frame that
 * is scrolled, painted 3. The chosen row is an element all the same: it is what a screen reader
 * reads, and the arrow keys lead to every other.
 */
import { useEffect, useLayoutEffect, useRef, type MouseEvent, type RefObject } from 'react'
import { lookOf } from '@/entities/states'
import { cellAt, type Cell, type Column, type Picture, type Sheet } from './grid'

interface Props {
  box: RefObject<HTMLDivElement | null> // what scrolls
  tasks: Picture['tasks']
  columns: readonly Column[]
  sheet: Sheet
  onOpen: (row: number, column: number) => void
  textOf: (cell: Cell) => string
}

/** What is painted again and again, in the colours of a theme. */
interface Paints {
  key: string
  tiles: Map<string, HTMLCanvasElement>
  letter: string
  glyphs: string
  colours: Record<'panel' | 'text' | 'dim' | 'line' | 'strong' | 'hover', string>
  across: number // of one letter of a name
}

export function ManyRows({ box, tasks, columns, sheet, onOpen, textOf }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const paints = useRef<Paints | null>(null)
  const hovered = useRef(-1)
  const paint = useRef(() => undefined as void)
  paint.current = () => {
    const [one, frame] = [canvas.current, box.current]
    if (one && frame) paints.current = painted(one, frame, paints.current, { tasks, columns, sheet, hovered: hovered.current })
  }
  useLayoutEffect(() => paint.current())
  useEffect(() => {
    const frame = box.current
    if (!frame) return
    const again = (): void => paint.current()
    const sizes = new ResizeObserver(again)
    const themes = new MutationObserver(again)
    sizes.observe(frame)
    themes.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    frame.addEventListener('scroll', again, { passive: true })
    return () => {
      sizes.disconnect()
      themes.disconnect()
      frame.removeEventListener('scroll', again)
    }
  }, [box])
  const at = ({ nativeEvent: { offsetX: x, offsetY: y } }: MouseEvent): Cell | null => {
    const frame = box.current
    return frame ? cellAt({ x, y }, { x: frame.scrollLeft, y: frame.scrollTop }, sheet, { rows: tasks.length, columns: columns.length }) : null
  }
  const point = (event: MouseEvent): void => {
    const cell = at(event)
    event.currentTarget.setAttribute('title', cell ? textOf(cell) : '')
    if (hovered.current === (cell?.row ?? -1)) return
    hovered.current = cell?.row ?? -1
    paint.current()
  }
  const leave = (): void => {
    hovered.current = -1
    paint.current()
  }
  return (
    <canvas
      ref={canvas}
      className="grid-many"
      aria-hidden
      data-rows={tasks.length}
      style={{ top: sheet.head }}
      onMouseMove={point}
      onMouseLeave={leave}
      onClick={(event) => {
        const cell = at(event)
        if (cell && cell.column >= 0) onOpen(cell.row, cell.column)
      }}
    />
  )
}

interface Shown {
  tasks: Picture['tasks']
  columns: readonly Column[]
  sheet: Sheet
  hovered: number
}

function painted(canvas: HTMLCanvasElement, frame: HTMLElement, known: Paints | null, { tasks, columns, sheet, hovered }: Shown): Paints | null {
  const context = canvas.getContext('2d')
  const [width, height] = [frame.clientWidth, Math.max(0, frame.clientHeight - sheet.head)]
  if (!context || !width || !height) return known
  const ratio = Math.min(2, devicePixelRatio || 1)
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  const paints = paintsOf(frame, known, ratio)
  const { colours, letter, across } = paints
  const { cell, wide } = sheet
  const [left, top] = [frame.scrollLeft, frame.scrollTop]
  const first = Math.max(0, Math.floor(top / cell))
  const last = Math.min(tasks.length - 1, Math.floor((top + height) / cell))
  const from = Math.max(0, Math.floor(left / cell))
  const to = Math.min(columns.length - 1, Math.floor((left + width - wide) / cell))
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.fillStyle = colours.panel
  context.fillRect(0, 0, width, height)
  if (hovered >= first && hovered <= last) {
    context.fillStyle = colours.hover
    context.fillRect(0, hovered * cell - top, width, cell)
  }
  for (let at = from; at <= to; at += 1) {
    const column = columns[at]
    if (!column) continue
    const x = wide + at * cell - left
    if (column.isNewVersion) dashes(context, x, height, colours.strong)
    for (let row = first; row <= last; row += 1) {
      const state = column.states.get(tasks[row]?.name ?? '')
      if (state !== undefined) context.drawImage(tileOf(frame, paints, state, cell, ratio), x, row * cell - top, cell, cell)
    }
  }
  // Names stay at the left, over what is scrolled below them.
  context.fillStyle = colours.panel
  context.fillRect(0, 0, wide, height)
  context.font = letter
  context.textBaseline = 'middle'
  const most = Math.max(4, Math.floor((wide - 20) / across))
  for (let row = first; row <= last; row += 1) {
    const task = tasks[row]
    if (!task) continue
    const y = row * cell - top
    if (row === hovered) {
      context.fillStyle = colours.hover
      context.fillRect(0, y, wide, cell)
    }
    context.fillStyle = task.isCurrent ? colours.text : colours.dim
    context.fillText(task.name.length > most ? `${task.name.slice(0, most - 1)}…` : task.name, 10, y + cell / 2)
    if (!task.isCurrent) context.fillRect(10, y + cell / 2, Math.min(task.name.length, most) * across, 1)
  }
  context.fillStyle = colours.line
  context.fillRect(wide - 1, 0, 1, height)
  return paints
}

function dashes(context: CanvasRenderingContext2D, x: number, height: number, colour: string): void {
  context.strokeStyle = colour
  context.lineWidth = 1
  context.setLineDash([3, 3])
  context.beginPath()
  context.moveTo(x + 0.5, 0)
  context.lineTo(x + 0.5, height)
  context.stroke()
  context.setLineDash([])
}

/** Reads colours and letters of the page, once for each theme and size of pixels. */
function paintsOf(frame: HTMLElement, known: Paints | null, ratio: number): Paints {
  const key = `${document.documentElement.dataset.theme ?? ''} ${ratio}`
  if (known?.key === key) return known
  const style = getComputedStyle(frame)
  const read = (name: string): string => style.getPropertyValue(name).trim()
  const probe = document.createElement('span')
  probe.className = 'mono'
  frame.append(probe)
  const { fontSize, fontFamily } = getComputedStyle(probe)
  const letter = `${fontSize} ${fontFamily}`
  probe.remove()
  const context = document.createElement('canvas').getContext('2d')
  if (context) context.font = letter
  const colours = { panel: read('--panel'), text: read('--text'), dim: read('--dim'), line: read('--line'), strong: read('--line-strong'), hover: read('--hover') }
  return { key, tiles: new Map(), letter, glyphs: style.fontFamily, colours, across: context?.measureText('m').width ?? 8 }
}

/** The cell of a state, painted once. */
function tileOf(frame: HTMLElement, paints: Paints, state: string, cell: number, ratio: number): HTMLCanvasElement {
  const known = paints.tiles.get(state)
  if (known) return known
  const { glyph, tone } = lookOf(state)
  const probe = document.createElement('span')
  probe.className = `grid-cell tone-${tone}`
  const inner = document.createElement('span')
  inner.className = 'glyph'
  probe.append(inner)
  frame.append(probe)
  const { color, backgroundColor } = getComputedStyle(inner)
  probe.remove()
  const tile = document.createElement('canvas')
  tile.width = tile.height = Math.round(cell * ratio)
  const context = tile.getContext('2d')
  if (context) {
    context.scale(ratio, ratio)
    context.fillStyle = backgroundColor
    context.beginPath()
    context.roundRect(3, 3, cell - 6, cell - 6, 4)
    context.fill()
    context.fillStyle = color
    context.font = `11px ${paints.glyphs}`
    context.textAlign = 'center'
    context.textBaseline = 'middle'
    context.fillText(glyph, cell / 2, cell / 2 + 0.5)
  }
  paints.tiles.set(state, tile)
  return tile
}
