/** Where tasks stand on the canvas, beside the definition and never a version of it. Pure. */
import { collapsed, folded, foldedName, groupNamed, NO_GROUPS, type Groups } from './groups'
import { layered, SIZES, type GraphTask, type Placed } from './layered'

/** The upper left corner of a task, in pixels. */
export interface Place {
  x: number
  y: number
}

export type Places = Readonly<Record<string, Place>>

/** Where tasks stand, and which are shown together: what a workflow's layout says. */
export interface Arrangement {
  places: Places
  groups: Groups
}

/** What is drawn around the tasks of a group that is not folded. */
export interface Frame extends Place {
  name: string
  tasks: readonly string[]
  width: number
  height: number
}

export const FRAME_HEAD = 26 // of its name
const FRAME_EDGE = 14

/** Returns where tasks stand now, as others see them (`theirs`), with what was moved here since `base`. */
export function joined(base: Places, mine: Places, theirs: Places): Places {
  const moved = Object.entries(mine).filter(([name, place]) => place.x !== base[name]?.x || place.y !== base[name]?.y)
  return { ...theirs, ...Object.fromEntries(moved) }
}

/** Returns all tasks in layers, as if nobody had moved any; those of a group stand together. */
export function arranged(tasks: readonly GraphTask[], groups: Groups = NO_GROUPS): Places {
  const parts = new Map<string, { places: Places; isFolded: boolean; x: number; y: number; width: number; height: number }>()
  const items = collapsed<GraphTask>(tasks, folded(groups, Object.keys(groups), true), (group, members, dependsOn) => {
    const places = layers(members)
    const isFolded = groups[group]?.isFolded ?? false
    parts.set(foldedName(group), { places, isFolded, ...(isFolded ? { x: 0, y: 0, ...SIZES } : around(Object.values(places))) })
    return { name: foldedName(group), dependsOn }
  })
  if (!parts.size) return layers(tasks)
  const columns: Placed[][] = []
  for (const item of layered(acyclic(items))) (columns[item.layer] ??= []).push(item)
  const found: Record<string, Place> = {}
  let left = 0
  for (const column of columns) {
    let [wide, free] = [0, -Infinity]
    for (const item of column.sort((a, b) => a.y - b.y)) {
      const part = parts.get(item.name)
      const { width, height } = part ?? SIZES
      const top = Math.max(free, Math.round(item.y - (height - SIZES.height) / 2))
      if (!part) found[item.name] = { x: left, y: top }
      else {
        const own = Object.entries(part.places)
        const middle = part.isFolded ? middleOf(Object.values(part.places)) : part
        for (const [name, at] of own) found[name] = { x: left + at.x - middle.x, y: top + at.y - middle.y }
      }
      free = top + height + SIZES.gapY
      wide = Math.max(wide, width)
    }
    left += wide + SIZES.gapX
  }
  return found
}

const layers = (tasks: readonly GraphTask[]): Places => Object.fromEntries(layered(tasks).map(({ name, x, y }) => [name, { x, y }]))

/** Without the edges that close circles, which groups make where a path leaves and comes back. */
function acyclic(items: readonly GraphTask[]): GraphTask[] {
  const before = new Map(items.map((item) => [item.name, item.dependsOn]))
  const kept = new Map<string, string[]>()
  const open = new Set<string>()
  for (const { name: start } of items) {
    if (kept.has(start)) continue
    const path: { name: string; at: number }[] = [{ name: start, at: 0 }]
    open.add(start)
    kept.set(start, [])
    for (let last = path.at(-1); last; last = path.at(-1)) {
      const next = before.get(last.name)?.[last.at]
      last.at += 1
      if (next === undefined) {
        open.delete(last.name)
        path.pop()
      } else if (!open.has(next)) {
        kept.get(last.name)?.push(next)
        if (kept.has(next) || !before.has(next)) continue
        path.push({ name: next, at: 0 })
        open.add(next)
        kept.set(next, [])
      }
    }
  }
  return items.map(({ name }) => ({ name, dependsOn: kept.get(name) ?? [] }))
}

/** The box around places of tasks, with room for a frame. */
function around(places: readonly Place[]): { x: number; y: number; width: number; height: number } {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity]
  for (const { x, y } of places) {
    left = Math.min(left, x)
    top = Math.min(top, y)
    right = Math.max(right, x + SIZES.width)
    bottom = Math.max(bottom, y + SIZES.height)
  }
  return { x: left - FRAME_EDGE, y: top - FRAME_HEAD - 6, width: right - left + 2 * FRAME_EDGE, height: bottom - top + FRAME_HEAD + 6 + FRAME_EDGE }
}

/** Where one task stands in the middle of others. */
function middleOf(places: readonly Place[]): Place {
  const { x, y, width, height } = around(places)
  return { x: Math.round(x + (width - SIZES.width) / 2), y: Math.round(y + FRAME_HEAD + 6 + (height - FRAME_HEAD - 6 - FRAME_EDGE - SIZES.height) / 2) }
}

/** Returns a place for every task: those that have one keep it, others come beside what they depend on. */
export function placed(tasks: readonly GraphTask[], places: Places, groups: Groups = NO_GROUPS): Places {
  const missing = tasks.filter((task) => !(task.name in places))
  if (!missing.length) return places
  if (missing.length === tasks.length) return arranged(tasks, groups)
  const found: Record<string, Place> = {}
  for (const { name } of tasks) if (places[name]) found[name] = places[name]
  for (const task of missing) {
    const before = task.dependsOn.flatMap((name) => found[name] ?? [])
    const others = Object.values(found)
    const wanted = before.length
      ? { x: Math.max(...before.map((one) => one.x)) + SIZES.width + SIZES.gapX, y: Math.round(before.reduce((sum, one) => sum + one.y, 0) / before.length) }
      : { x: Math.min(...others.map((one) => one.x)), y: Math.max(...others.map((one) => one.y)) + SIZES.height + SIZES.gapY }
    found[task.name] = freePlace(found, wanted)
  }
  return found
}

/** Returns the places of tasks that are seen and of folded groups: in the middle of their tasks, or free below. */
export function placesOfItems(items: readonly GraphTask[], groups: Groups, places: Places): Places {
  const found: Record<string, Place> = {}
  const own: string[] = []
  for (const { name } of items) {
    if (groupNamed(name) !== null) own.push(name)
    else if (places[name]) found[name] = places[name]
  }
  for (const name of own) {
    const spots = (groups[groupNamed(name) ?? '']?.tasks ?? []).flatMap((task) => places[task] ?? [])
    if (spots.length) found[name] = freePlace(found, middleOf(spots))
  }
  return found
}

/** Returns the frames of groups that are not folded and have tasks here. */
export function framesOf(tasks: readonly GraphTask[], groups: Groups, places: Places): Frame[] {
  const known = new Set(tasks.map((task) => task.name))
  return Object.entries(groups).flatMap(([name, group]) => {
    const own = group.isFolded ? [] : group.tasks.filter((task) => known.has(task) && places[task])
    return own.length ? [{ name, tasks: own, ...around(own.map((task) => places[task] ?? { x: 0, y: 0 })) }] : []
  })
}

/** Returns the next frame whose head is at a point of the picture. */
export function frameAt(frames: readonly Frame[], point: Place): Frame | undefined {
  return frames.findLast((one) => point.x >= one.x && point.x <= one.x + one.width && point.y >= one.y && point.y <= one.y + FRAME_HEAD)
}

/** Returns the wanted place, or the next one below where nothing stands. */
export function freePlace(places: Places, wanted: Place): Place {
  const others = Object.values(places)
  const place = { x: Math.round(wanted.x), y: Math.round(wanted.y) }
  const isTaken = (): boolean => others.some((one) => Math.abs(one.x - place.x) < SIZES.width && Math.abs(one.y - place.y) < SIZES.height + 4)
  while (isTaken()) place.y += SIZES.height + SIZES.gapY
  return place
}
