/**
 * The layer of a graph that shows many tasks as one picture. Choosing and panning are the graph's.
 *
 * More is painted than is seen, so that panning moves what is there and paints now and then.
 */
import { useStore } from '@xyflow/react'
import { useLayoutEffect, useMemo, useRef } from 'react'
import { SIZES } from './layered'
import { paint, pictureOf, type Box, type Colours, type Line, type Picture, type View } from './paint'
import type { Frame, Place, Places } from './places'

interface Props {
  boxes: readonly Box[]
  edges: readonly Line[]
  places: Places
  frames: readonly Frame[]
  chosen: ReadonlySet<string>
  label: string
}

const MARGIN = 256 // pixels around what is seen that are painted as well

/** What is on a canvas: it is moved while nothing but the place of the view differs. */
interface Painted extends View {
  picture: Picture
  chosen: ReadonlySet<string>
  colours: Colours
  width: number
  height: number
}

export function ManyTasks({ boxes, edges, places, frames, chosen, label }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const painted = useRef<Painted | null>(null)
  const [x, y, zoom] = useStore(({ transform }) => transform)
  const width = useStore((state) => state.width)
  const height = useStore((state) => state.height)
  const picture = useMemo(() => pictureOf(boxes, edges, places, frames, SIZES), [boxes, edges, places, frames])
  useLayoutEffect(() => {
    const one = canvas.current
    const context = one?.getContext('2d')
    if (!one || !context || !width || !height) return
    const ratio = Math.min(2, devicePixelRatio || 1)
    const wanted: Painted = { picture, chosen, colours: coloursOf(one), x, y, zoom, width, height }
    const moved = movedBy(painted.current, wanted)
    if (moved) {
      // Whole pixels, so that names stay sharp.
      one.style.transform = `translate(${Math.round(moved.x * ratio) / ratio}px, ${Math.round(moved.y * ratio) / ratio}px)`
      return
    }
    const page = { width: width + 2 * MARGIN, height: height + 2 * MARGIN }
    const [across, down] = [Math.round(page.width * ratio), Math.round(page.height * ratio)]
    if (one.width !== across || one.height !== down) {
      one.width = across
      one.height = down
    }
    one.style.transform = ''
    paint(context, picture, SIZES, { x: x + MARGIN, y: y + MARGIN, zoom }, page, ratio, wanted.colours, chosen)
    painted.current = wanted
  }, [picture, x, y, zoom, width, height, chosen])
  const style = { left: -MARGIN, top: -MARGIN, width: width + 2 * MARGIN, height: height + 2 * MARGIN }
  return <canvas ref={canvas} className="graph-many" role="img" aria-label={label} data-boxes={boxes.length} style={style} />
}

/** Returns how far what is painted has to be moved; null: it has to be painted anew. */
function movedBy(before: Painted | null, wanted: Painted): Place | null {
  if (!before) return null
  const { x, y, ...rest } = wanted
  if (Object.entries(rest).some(([name, value]) => before[name as keyof Painted] !== value)) return null
  const [right, down] = [x - before.x, y - before.y]
  return Math.abs(right) > MARGIN || Math.abs(down) > MARGIN ? null : { x: right, y: down }
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
