/** The layer of a graph that shows many tasks as one picture. Choosing and panning are the graph's. */
import { useStore } from '@xyflow/react'
import { useLayoutEffect, useMemo, useRef } from 'react'
import { SIZES } from './layered'
import { paint, pictureOf, type Box, type Colours, type Line } from './paint'
import type { Frame, Places } from './places'

interface Props {
  boxes: readonly Box[]
  edges: readonly Line[]
  places: Places
  frames: readonly Frame[]
  chosen: ReadonlySet<string>
  label: string
}

export function ManyTasks({ boxes, edges, places, frames, chosen, label }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [x, y, zoom] = useStore(({ transform }) => transform)
  const width = useStore((state) => state.width)
  const height = useStore((state) => state.height)
  const picture = useMemo(() => pictureOf(boxes, edges, places, frames, SIZES), [boxes, edges, places, frames])
  useLayoutEffect(() => {
    const one = canvas.current
    const context = one?.getContext('2d')
    if (!one || !context || !width || !height) return
    const ratio = Math.min(2, devicePixelRatio || 1)
    if (one.width !== Math.round(width * ratio) || one.height !== Math.round(height * ratio)) {
      one.width = Math.round(width * ratio)
      one.height = Math.round(height * ratio)
    }
    paint(context, picture, SIZES, { x, y, zoom }, { width, height }, ratio, coloursOf(one), chosen)
  }, [picture, x, y, zoom, width, height, chosen])
  return <canvas ref={canvas} className="graph-many" role="img" aria-label={label} data-boxes={boxes.length} style={{ width, height }} />
}

let known: { theme: string; colours: Colours } | null = null

/** Reads the colours of the page, once for each theme. */
function coloursOf(element: Element): Colours {
  const root = document.documentElement
  const theme = `${root.className} ${root.dataset.theme ?? ''} ${matchMedia('(prefers-color-scheme: dark)').matches}`
  if (known?.theme === theme) return known.colours
  const style = getComputedStyle(element)
  const read = (name: string): string => style.getPropertyValue(name).trim()
  const tones = new Map<string, string>()
  const probe = element.parentElement ?? root
  const tone = (name: string): string => {
    const found = tones.get(name) ?? toneOf(probe, name) ?? read('--edge')
    tones.set(name, found)
    return found
  }
  const colours = { panel: read('--panel'), text: read('--text'), edge: read('--edge'), line: read('--line'), accent: read('--accent'), critical: read('--critical'), tone }
  known = { theme, colours }
  return colours
}

function toneOf(parent: Element, name: string): string | null {
  if (name === 'plain') return getComputedStyle(parent).getPropertyValue('--accent').trim()
  const one = document.createElement('i')
  one.className = `tone-${name}`
  parent.append(one)
  const found = getComputedStyle(one).getPropertyValue('--tone').trim()
  one.remove()
  return found || null
}
