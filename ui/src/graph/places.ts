/** Where tasks stand on the canvas, beside the definition and never a version of it. Pure. */
import { layered, SIZES } from './layered'

/** The upper left corner of a task, in pixels. */
export interface Place {
  x: number
  y: number
}

export type Places = Readonly<Record<string, Place>>

/** Returns where tasks stand now, as others see them (`theirs`), with what was moved here since `base`. */
export function joined(base: Places, mine: Places, theirs: Places): Places {
  const moved = Object.entries(mine).filter(([name, place]) => place.x !== base[name]?.x || place.y !== base[name]?.y)
  return { ...theirs, ...Object.fromEntries(moved) }
}

interface Task {
  name: string
  dependsOn: readonly string[]
}

/** Returns all tasks in layers, as if nobody had moved any. */
export function arranged(tasks: readonly Task[]): Places {
  return Object.fromEntries(layered(tasks).map(({ name, x, y }) => [name, { x, y }]))
}

/** Returns a place for every task: those that have one keep it, others come beside what they depend on. */
export function placed(tasks: readonly Task[], places: Places): Places {
  const missing = tasks.filter((task) => !(task.name in places))
  if (!missing.length) return places
  if (missing.length === tasks.length) return arranged(tasks)
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

/** Returns the wanted place, or the next one below where nothing stands. */
export function freePlace(places: Places, wanted: Place): Place {
  const others = Object.values(places)
  const place = { x: Math.round(wanted.x), y: Math.round(wanted.y) }
  const isTaken = (): boolean => others.some((one) => Math.abs(one.x - place.x) < SIZES.width && Math.abs(one.y - place.y) < SIZES.height + 4)
  while (isTaken()) place.y += SIZES.height + SIZES.gapY
  return place
}
