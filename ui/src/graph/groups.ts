/**
 * Groups of tasks: what stands for them while they are folded, and how they are changed. Pure.
 *
 * A task is in one group at most. Names of tasks that are not there count nothing: a group may have
 * tasks that only other versions have.
 */
import { lookOf } from '@/entities/states'
import type { GraphTask } from './layered'

export interface Group {
  tasks: readonly string[]
  isFolded: boolean
}

/** Groups by name. */
export type Groups = Readonly<Record<string, Group>>

export const NO_GROUPS: Groups = {}

const FOLDED = 'group:' // no name of a task has a colon

/** Returns the name that a folded group has among tasks. */
export function foldedName(group: string): string {
  return FOLDED + group
}

/** Returns the group that is meant by a name among tasks; null: it is a task. */
export function groupNamed(name: string): string | null {
  return name.startsWith(FOLDED) ? name.slice(FOLDED.length) : null
}

/** Returns what stands for each task of a folded group. */
export function standingFor(groups: Groups): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [name, { tasks, isFolded }] of Object.entries(groups)) {
    if (isFolded) for (const task of tasks) found.set(task, foldedName(name))
  }
  return found
}

/** Returns the tasks with one item for each folded group, where its first task was; edges lead to and from that. */
export function collapsed<T extends GraphTask>(tasks: readonly T[], groups: Groups, made: (group: string, tasks: readonly T[], dependsOn: readonly string[]) => T): readonly T[] {
  const stands = standingFor(groups)
  if (!stands.size) return tasks
  const members = new Map<string, T[]>()
  for (const task of tasks) {
    const item = stands.get(task.name)
    if (item === undefined) continue
    const known = members.get(item)
    if (known) known.push(task)
    else members.set(item, [task])
  }
  const before = (some: readonly T[], own: string): string[] => [...new Set(some.flatMap((task) => task.dependsOn.map((name) => stands.get(name) ?? name)))].filter((name) => name !== own)
  const shown: T[] = []
  for (const task of tasks) {
    const item = stands.get(task.name)
    if (item === undefined) {
      shown.push(task.dependsOn.some((name) => stands.has(name)) ? { ...task, dependsOn: before([task], task.name) } : task)
      continue
    }
    const own = members.get(item)
    if (!own) continue // its group is there already
    members.delete(item)
    shown.push(made(item.slice(FOLDED.length), own, before(own, item)))
  }
  return shown
}

/** Which state of a group's tasks says most about it, worst first; states that are not here come last. */
const WORST = ['FAILED', 'LOST', 'KILLED', 'STOPPED', 'UP_FOR_RETRY', 'BLOCKED', 'PAUSED', 'RUNNING', 'CLAIMED', 'QUEUED', 'DELAYED', 'RESCHEDULED', 'WAITING', 'SKIPPED', 'SUCCEEDED']

/** Returns how many tasks have each state, the worst state first. */
export function worstFirst(states: readonly string[]): readonly [state: string, count: number][] {
  const counts = new Map<string, number>()
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1)
  const rank = (state: string): number => (WORST.includes(state) ? WORST.indexOf(state) : WORST.length)
  return [...counts].sort(([a], [b]) => rank(a) - rank(b))
}

/** Returns the worst states with their counts as glyphs, `✕ 1 · ▶ 3`. */
export function countsText(counts: readonly [state: string, count: number][]): string {
  return counts.slice(0, 3).map(([state, count]) => `${lookOf(state).glyph} ${count}`).join(' · ')
}

/** Returns the names of the groups that have one of some tasks. */
export function groupsWith(groups: Groups, tasks: readonly string[]): string[] {
  const wanted = new Set(tasks)
  return Object.keys(groups).filter((name) => groups[name]?.tasks.some((task) => wanted.has(task)))
}

/** Returns the groups with a new one of some tasks, which leave the groups that they were in. */
export function grouped(groups: Groups, name: string, tasks: readonly string[]): Groups {
  const moved = new Set(tasks)
  const others = Object.entries(groups).flatMap(([own, group]): [string, Group][] => {
    const left = group.tasks.filter((task) => !moved.has(task))
    if (own === name || !left.length) return []
    return [[own, left.length === group.tasks.length ? group : { ...group, tasks: left }]]
  })
  return { ...Object.fromEntries(others), [name]: { tasks: [...moved], isFolded: false } }
}

export function ungrouped(groups: Groups, names: readonly string[]): Groups {
  return Object.fromEntries(Object.entries(groups).filter(([name]) => !names.includes(name)))
}

export function renamedGroup(groups: Groups, name: string, next: string): Groups {
  return Object.fromEntries(Object.entries(groups).map(([own, group]) => [own === name ? next : own, group]))
}

export function folded(groups: Groups, names: readonly string[], isFolded: boolean): Groups {
  return Object.fromEntries(Object.entries(groups).map(([name, group]) => [name, names.includes(name) ? { ...group, isFolded } : group]))
}

/** Returns the groups after tasks were renamed. */
export function withRenamed(groups: Groups, renamed: ReadonlyMap<string, string>): Groups {
  return Object.fromEntries(Object.entries(groups).map(([name, group]) => [name, { ...group, tasks: group.tasks.map((task) => renamed.get(task) ?? task) }]))
}

/** Returns a name that no group has. */
export function freeGroupName(groups: Groups): string {
  let number = 1
  while (`group_${number}` in groups) number += 1
  return `group_${number}`
}

export function isSameGroup(one: Group | undefined, other: Group | undefined): boolean {
  if (!one || !other) return one === other
  return one.isFolded === other.isFolded && one.tasks.length === other.tasks.length && one.tasks.every((task, at) => task === other.tasks[at])
}

/** Returns the groups as others see them (`theirs`), with what was changed here since `base`. */
export function joinedGroups(base: Groups, mine: Groups, theirs: Groups): Groups {
  const changed = Object.keys({ ...base, ...mine }).filter((name) => !isSameGroup(base[name], mine[name]))
  const own = Object.fromEntries(changed.flatMap((name): [string, Group][] => (mine[name] ? [[name, mine[name]]] : [])))
  const taken = new Set(Object.values(own).flatMap((group) => group.tasks))
  const others = Object.entries(theirs).flatMap(([name, group]): [string, Group][] => {
    if (changed.includes(name)) return []
    const left = group.tasks.filter((task) => !taken.has(task))
    return left.length ? [[name, { ...group, tasks: left }]] : []
  })
  return { ...Object.fromEntries(others), ...own }
}

/** The groups as a layout of the API has them. */
export interface StoredGroups {
  groups: Readonly<Record<string, readonly string[]>>
  folded: readonly string[]
}

export function groupsFrom(stored: StoredGroups): Groups {
  return Object.fromEntries(Object.entries(stored.groups).map(([name, tasks]) => [name, { tasks, isFolded: stored.folded.includes(name) }]))
}

export function storedFrom(groups: Groups): { groups: Record<string, string[]>; folded: string[] } {
  return {
    groups: Object.fromEntries(Object.entries(groups).map(([name, group]) => [name, [...group.tasks]])),
    folded: Object.keys(groups).filter((name) => groups[name]?.isFolded),
  }
}
