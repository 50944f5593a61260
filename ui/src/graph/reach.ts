/** Which tasks stand before or behind others. Pure. */
import type { GraphTask } from './layered'

/** Returns `from` and all that depends on it, directly or not. */
export function downstream(tasks: readonly GraphTask[], from: Iterable<string>): Set<string> {
  const after = new Map<string, string[]>()
  for (const task of tasks) {
    for (const name of task.dependsOn) after.set(name, [...(after.get(name) ?? []), task.name])
  }
  return reach(from, (name) => after.get(name) ?? [])
}

/** Returns `from` and all that it depends on, directly or not. */
export function upstream(tasks: readonly GraphTask[], from: Iterable<string>): Set<string> {
  const before = new Map(tasks.map((task) => [task.name, task.dependsOn]))
  return reach(from, (name) => before.get(name) ?? [])
}

function reach(from: Iterable<string>, next: (name: string) => readonly string[]): Set<string> {
  const found = new Set(from)
  for (const name of found) for (const other of next(name)) found.add(other)
  return found
}
