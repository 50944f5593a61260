/**
 * Two texts that began as one: what the others have changed is taken into ours, task by task.
 *
 * Nothing is overwritten: where both have changed the same field of the same task, ours stays and
 * the difference is told, to be decided upon.
 */
import { insert, same, set, sourceOf } from './patch'
import { isPlain, parse, type Parsed, type Path, type Plain } from './parse'
import { WORKFLOW_ORDER } from './fields'
import { removeTasks, setField, TASK_ORDER, taskNamed } from './tasks'

export interface Conflict {
  task: string | null // null: a field of the workflow
  field: string // '': the whole task
  base: unknown
  mine: unknown
  theirs: unknown
}

export interface Merged {
  text: string
  /** What was taken from the others, as `task.field`, for those who want to know. */
  taken: readonly string[]
  conflicts: readonly Conflict[]
}

/** Returns ours with what the others have changed; null: one of the texts cannot be read. */
export function merge(base: string, mine: string, theirs: string): Merged | null {
  if (mine === theirs || base === theirs) return { text: mine, taken: [], conflicts: [] }
  if (base === mine) return { text: theirs, taken: ['*'], conflicts: [] }
  const [before, own, other] = [parse(base), parse(mine), parse(theirs)]
  if (before.mistakes.length || own.mistakes.length || other.mistakes.length) return null
  const taken: string[] = []
  const conflicts: Conflict[] = []
  let now = own
  now = mergeTasks(before, now, other, taken, conflicts)
  for (const field of keysOf(before.value, other.value, own.value)) {
    if (field === 'tasks') continue
    now = mergeField(now, null, field, before.value?.[field], own.value?.[field], other.value?.[field], taken, conflicts)
  }
  return { text: now.text, taken, conflicts }
}

function mergeTasks(before: Parsed, own: Parsed, other: Parsed, taken: string[], conflicts: Conflict[]): Parsed {
  let now = own
  const gone: string[] = []
  for (const name of new Set([...before.tasks, ...other.tasks].map((task) => task.name))) {
    const [base, mine, theirs] = [before, own, other].map((parsed) => taskNamed(parsed, name))
    if (!theirs) {
      if (!base || !mine) continue // ours is new, or both have removed it
      if (same(base.value, mine.value)) gone.push(name)
      else conflicts.push({ task: name, field: '', base: base.value, mine: mine.value, theirs: undefined })
    } else if (!mine) {
      if (!base) {
        now = insert(now, ['tasks'], now.tasks.length, theirs.value, sourceOf(other, ['tasks', theirs.index]))
        taken.push(name)
      } else if (!same(base.value, theirs.value)) {
        conflicts.push({ task: name, field: '', base: base.value, mine: undefined, theirs: theirs.value })
      }
    } else {
      for (const [field, values] of taskFields(base?.value, mine.value, theirs.value)) {
        now = mergeField(now, name, field, ...values, taken, conflicts)
      }
    }
  }
  for (const name of gone) taken.push(`${name} −`)
  return gone.length ? removeTasks(now, gone) : now
}

/** The fields of a task, those of its params one by one. */
function* taskFields(base: Plain | undefined, mine: Plain, theirs: Plain): Generator<[string, [unknown, unknown, unknown]]> {
  for (const field of keysOf(base, mine, theirs)) {
    const values: [unknown, unknown, unknown] = [base?.[field], mine[field], theirs[field]]
    if (field === 'params' && values.every(isPlain)) {
      const [was, own, other] = values as [Plain, Plain, Plain]
      for (const key of keysOf(was, own, other)) yield [`params.${key}`, [was[key], own[key], other[key]]]
    } else {
      yield [field, values]
    }
  }
}

function mergeField(now: Parsed, task: string | null, field: string, base: unknown, mine: unknown, theirs: unknown, taken: string[], conflicts: Conflict[]): Parsed {
  if (same(base, theirs) || same(mine, theirs)) return now
  if (!same(base, mine)) {
    const both = field === 'depends_on' ? mergeEdges(base, mine, theirs) : null
    if (!both) {
      conflicts.push({ task, field, base, mine, theirs })
      return now
    }
    taken.push(task === null ? field : `${task}.${field}`)
    return put(now, task, field, both.length ? both : undefined)
  }
  taken.push(task === null ? field : `${task}.${field}`)
  return put(now, task, field, theirs)
}

/** Edges come and go one by one, so two who change different ones do not meet. */
function mergeEdges(base: unknown, mine: unknown, theirs: unknown): string[] | null {
  const [was, own, other] = [base, mine, theirs].map((value) => new Set(Array.isArray(value) ? (value as string[]) : typeof value === 'string' ? [value] : []))
  if (!was || !own || !other) return null
  return [...new Set([...own, ...other])].filter((name) => (own.has(name) || !was.has(name)) && (other.has(name) || !was.has(name)))
}

function put(now: Parsed, task: string | null, field: string, value: unknown): Parsed {
  const path: Path = field.split('.')
  if (task !== null) return setField(now, task, path, value)
  return set(now, path, value, WORKFLOW_ORDER)
}

/** Returns the text with the others' side of a conflict. */
export function takeTheirs(text: string, theirText: string, conflict: Conflict): string {
  const now = parse(text)
  const { task, field, theirs } = conflict
  if (field !== '') return put(now, task, field, theirs).text
  if (theirs === undefined) return removeTasks(now, [task ?? '']).text
  const other = parse(theirText)
  const own = taskNamed(other, task ?? '')
  return insert(now, ['tasks'], now.tasks.length, theirs, own && sourceOf(other, ['tasks', own.index])).text
}

function keysOf(...values: (Plain | null | undefined)[]): string[] {
  const found = new Set(values.flatMap((value) => Object.keys(value ?? {})))
  return [...found].sort((a, b) => (TASK_ORDER as readonly string[]).indexOf(a) - (TASK_ORDER as readonly string[]).indexOf(b))
}
