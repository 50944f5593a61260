/**
 * Many tasks on one canvas: boxes by colour, edges as one path, names where they can be read.
 *
 * As elements of the page a thousand tasks take 50 ms of processor time for each frame that is
 * panned, as one picture some milliseconds. All that does not change with the view is a path that
 * was made before.
 */
import { FRAME_HEAD, type Frame, type Place, type Places } from './places'

export interface View {
  x: number
  y: number
  zoom: number
}

export interface Box {
  name: string
  label: string
  place: Place
  tone: string // of its state; 'plain': it has none
  glyph: string
  isCritical: boolean
  isGroup: boolean // it stands for several tasks
}

export interface Size {
  width: number
  height: number
}

/** An edge, by the names of its tasks. `isNear`: one of them is chosen. */
export interface Line {
  source: string
  target: string
  isCritical: boolean
  isNear: boolean
}

/** The colours of the page, which differ in the dark. */
export type Colours = Readonly<Record<'panel' | 'text' | 'edge' | 'line' | 'accent' | 'critical', string>> & { tone: (name: string) => string }

export interface Picture {
  boxes: readonly Box[]
  byTone: ReadonlyMap<string, Path2D>
  critical: Path2D
  stacks: Path2D // what shows that a box stands for several tasks
  frames: readonly Frame[]
  edges: Path2D
  criticalEdges: Path2D
  nearEdges: Path2D
}

export const MOST_MOUNTED = 120 // more tasks than that at once are one picture
const GLYPHS = 0.12 // below this zoom there are colours alone
export const READABLE = 0.28 // names are written from this zoom on
const FULL = 0.6 // and from this one on with a smaller letter

/** Returns how many places are seen in a window of the page. */
export function seen(places: readonly Place[], size: Size, view: View, page: Size): number {
  const left = -view.x / view.zoom - size.width
  const top = -view.y / view.zoom - size.height
  const right = (page.width - view.x) / view.zoom
  const bottom = (page.height - view.y) / view.zoom
  let count = 0
  for (const { x, y } of places) if (x > left && x < right && y > top && y < bottom) count += 1
  return count
}

/** Returns the view in which all places are seen, no larger than they are. */
export function fitting(places: readonly Place[], size: Size, page: Size, least: number): View {
  if (!places.length) return { x: 0, y: 0, zoom: 1 }
  const left = Math.min(...places.map(({ x }) => x))
  const top = Math.min(...places.map(({ y }) => y))
  const width = Math.max(...places.map(({ x }) => x)) + size.width - left
  const height = Math.max(...places.map(({ y }) => y)) + size.height - top
  const room = 0.88
  const zoom = Math.max(least, Math.min(1, (page.width * room) / width, (page.height * room) / height))
  return { x: (page.width - width * zoom) / 2 - left * zoom, y: (page.height - height * zoom) / 2 - top * zoom, zoom }
}

/** Returns the box at a point of the picture. */
export function boxAt(boxes: readonly Box[], size: Size, point: Place): Box | undefined {
  return boxes.find(({ place }) => point.x >= place.x && point.x <= place.x + size.width && point.y >= place.y && point.y <= place.y + size.height)
}

/** Returns the boxes that a rectangle touches, given by two of its corners. */
export function within(boxes: readonly Box[], size: Size, one: Place, other: Place): Box[] {
  const [left, right, top, bottom] = [Math.min(one.x, other.x), Math.max(one.x, other.x), Math.min(one.y, other.y), Math.max(one.y, other.y)]
  return boxes.filter(({ place: { x, y } }) => x + size.width >= left && x <= right && y + size.height >= top && y <= bottom)
}

/** Makes the paths of a picture, once for each change of what is shown. */
export function pictureOf(boxes: readonly Box[], edges: readonly Line[], places: Places, frames: readonly Frame[], size: Size): Picture {
  const byTone = new Map<string, Path2D>()
  const critical = new Path2D()
  const stacks = new Path2D()
  for (const { place, tone, isCritical, isGroup } of boxes) {
    const path = byTone.get(tone) ?? new Path2D()
    byTone.set(tone, path)
    path.roundRect(place.x, place.y, size.width, size.height, 8)
    if (isCritical) critical.rect(place.x + 8, place.y + size.height - 2, size.width - 16, 3)
    if (isGroup) {
      stacks.moveTo(place.x + 10, place.y + size.height + 5)
      stacks.lineTo(place.x + size.width + 5, place.y + size.height + 5)
      stacks.lineTo(place.x + size.width + 5, place.y + 10)
    }
  }
  const [plain, marked, near] = [new Path2D(), new Path2D(), new Path2D()]
  for (const { source, target, isCritical, isNear } of edges) {
    const from = places[source]
    const to = places[target]
    if (!from || !to) continue
    const path = isCritical ? marked : isNear ? near : plain
    const [x, y, endX, endY] = [from.x + size.width, from.y + size.height / 2, to.x, to.y + size.height / 2]
    const bend = Math.max(24, Math.abs(endX - x) / 2)
    path.moveTo(x, y)
    path.bezierCurveTo(x + bend, y, endX - bend, endY, endX, endY)
  }
  return { boxes, byTone, critical, stacks, frames, edges: plain, criticalEdges: marked, nearEdges: near }
}

/** Paints a picture. `ratio`: of pixels to CSS pixels. */
export function paint(context: CanvasRenderingContext2D, picture: Picture, size: Size, view: View, page: Size, ratio: number, colours: Colours, chosen: ReadonlySet<string>): void {
  const { zoom } = view
  context.setTransform(1, 0, 0, 1, 0, 0)
  context.clearRect(0, 0, page.width * ratio, page.height * ratio)
  context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * view.x, ratio * view.y)
  frames(context, picture.frames, zoom, colours)
  context.lineWidth = Math.max(1.5, 0.8 / zoom)
  context.strokeStyle = colours.edge
  context.stroke(picture.edges)
  context.strokeStyle = colours.accent
  context.stroke(picture.nearEdges)
  context.lineWidth = Math.max(2.5, 1.4 / zoom)
  context.strokeStyle = colours.critical
  context.stroke(picture.criticalEdges)
  for (const [tone, path] of picture.byTone) {
    const colour = colours.tone(tone)
    context.fillStyle = colours.panel
    context.fill(path)
    context.globalAlpha = zoom < READABLE ? 0.45 : 0.16
    context.fillStyle = colour
    context.fill(path)
    context.globalAlpha = 1
    context.lineWidth = Math.max(1, 0.7 / zoom)
    context.strokeStyle = colour
    context.stroke(path)
  }
  context.lineWidth = Math.max(1, 0.7 / zoom)
  context.strokeStyle = colours.edge
  context.stroke(picture.stacks)
  context.fillStyle = colours.critical
  context.fill(picture.critical)
  if (zoom >= GLYPHS) names(context, picture.boxes, size, view, page, colours)
  if (!chosen.size) return
  context.lineWidth = Math.max(3, 2.5 / zoom)
  context.strokeStyle = colours.accent
  for (const { name, place } of picture.boxes) if (chosen.has(name)) context.strokeRect(place.x, place.y, size.width, size.height)
}

/** Paints what is around the tasks of groups, with names of one size from near and far. */
function frames(context: CanvasRenderingContext2D, all: readonly Frame[], zoom: number, colours: Colours): void {
  const letter = Math.max(13, 11 / zoom)
  context.font = `600 ${letter}px sans-serif`
  context.textAlign = 'left'
  context.textBaseline = 'bottom'
  context.lineWidth = Math.max(1, 0.8 / zoom)
  for (const { name, x, y, width, height } of all) {
    context.globalAlpha = 0.06
    context.fillStyle = colours.accent
    context.fillRect(x, y, width, height)
    context.globalAlpha = 0.5
    context.strokeStyle = colours.accent
    context.strokeRect(x, y, width, height)
    context.globalAlpha = 1
    context.fillStyle = colours.text
    context.fillText(name, x + 4, letter < FRAME_HEAD ? y + FRAME_HEAD - 4 : y - 2 / zoom, width)
  }
}

function names(context: CanvasRenderingContext2D, boxes: readonly Box[], size: Size, view: View, page: Size, colours: Colours): void {
  const isReadable = view.zoom >= READABLE
  const letter = view.zoom < FULL ? 20 : 13
  context.textBaseline = 'middle'
  for (const { label, place, tone, glyph } of boxes) {
    if (seen([place], size, view, page) === 0) continue
    const middle = place.y + size.height / 2
    if (glyph) {
      context.font = `${isReadable ? 18 : 30}px sans-serif`
      context.textAlign = 'center'
      context.fillStyle = colours.tone(tone)
      context.fillText(glyph, isReadable ? place.x + 22 : place.x + size.width / 2, middle)
    }
    if (!isReadable) continue
    context.font = `550 ${letter}px sans-serif`
    context.textAlign = 'left'
    context.fillStyle = colours.text
    context.fillText(label, place.x + (glyph ? 42 : 14), middle, size.width - (glyph ? 52 : 24))
  }
}
