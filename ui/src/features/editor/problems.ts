/** What the server says is wrong, by the place that it is about. Pure. */
import type { ProblemField } from '@/api/types'
import type { Parsed } from '@/definition/parse'

export interface Trouble {
  /** `tasks.2.params.script`; '': of the whole. */
  key: string
  message: string
  line: number | null
  task: string | null
}

/** Returns problems with their places, as paths of the value. */
export function troublesOf(problems: readonly ProblemField[], parsed: Parsed): Trouble[] {
  return problems.map(({ field, message, line }) => {
    const path = [...field.matchAll(/[^.[\]]+/g)].map(([part]) => part)
    const task = path[0] === 'tasks' && path[1] !== undefined ? (parsed.tasks.find((one) => one.index === Number(path[1]))?.name ?? null) : null
    return { key: path.join('.'), message, line: line ?? null, task }
  })
}

/** Returns what is wrong at a place, or within a value that has no field of its own. */
export function problemAt(troubles: readonly Trouble[], path: readonly (string | number)[]): string | undefined {
  const key = path.join('.')
  return troubles.find((one) => one.key === key)?.message
}
