/** What the canvas shows: tasks, and folded groups in the place of theirs. Pure. */
import type { TaskModel } from '@/definition/parse'
import { collapsed, foldedName, groupNamed, type Groups } from '@/graph/groups'
import type { GraphTask } from '@/graph/layered'
import type { Place, Places } from '@/graph/places'

export interface Item extends GraphTask {
  task: TaskModel | null // null: it is a group
  tasks: readonly string[] // that it stands for
}

export interface ItemEdge {
  id: string
  source: string
  target: string
  isOwn: boolean // of two tasks; others stand for edges of a group's tasks
}

/** What is dragged, and by how much from where it stands. */
export interface Move {
  tasks: ReadonlySet<string>
  items: ReadonlySet<string>
  by: Place
}

export function itemsOf(tasks: readonly TaskModel[], groups: Groups): readonly Item[] {
  const all = tasks.map((task): Item => ({ name: task.name, dependsOn: task.dependsOn, task, tasks: [task.name] }))
  return collapsed(all, groups, (group, members, dependsOn) => ({ name: foldedName(group), dependsOn, task: null, tasks: members.map((one) => one.name) }))
}

export function edgesOf(items: readonly Item[]): ItemEdge[] {
  const known = new Set(items.map((item) => item.name))
  return items.flatMap((item) =>
    [...new Set(item.dependsOn)]
      .filter((name) => known.has(name))
      .map((name): ItemEdge => ({ id: `${name}→${item.name}`, source: name, target: item.name, isOwn: item.task !== null && groupNamed(name) === null })),
  )
}

/** Returns the places with those of some tasks moved. */
export function movedBy(places: Places, tasks: Iterable<string>, by: Place): Places {
  const found: Record<string, Place> = { ...places }
  for (const task of tasks) {
    const at = places[task]
    if (at) found[task] = { x: Math.round(at.x + by.x), y: Math.round(at.y + by.y) }
  }
  return found
}

/** Returns the names of the tasks of some items. */
export function tasksIn(items: readonly Item[], names: ReadonlySet<string>): string[] {
  return items.flatMap((item) => (names.has(item.name) ? item.tasks : []))
}

/** Returns the items of which all tasks are chosen. */
export function chosenItems(items: readonly Item[], selected: readonly string[]): ReadonlySet<string> {
  const chosen = new Set(selected)
  return new Set(items.flatMap((item) => (item.tasks.every((task) => chosen.has(task)) ? [item.name] : [])))
}
