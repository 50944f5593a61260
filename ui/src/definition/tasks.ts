/** What editors do to tasks: add, rename, connect, remove, copy. Each returns a new text. Pure. */
import { insert, move, set, sourceOf, unset } from './patch'
import { isPlain, parse, textsOf, type Parsed, type Path, type Plain, type TaskModel } from './parse'

/** The usual order of a task's fields; a new one is put behind those that stand before it here. */
export const TASK_ORDER = [
  'name', 'type', 'description', 'enabled', 'depends_on', 'run_when', 'params', 'parameters', 'worker_group', 'environment', 'concurrency_group', 'priority',
  'delay', 'retries', 'retry_delay', 'retry_backoff', 'retry_max_delay', 'retry_jitter', 'timeout', 'timeout_action', 'outputs_from_log', 'resources', 'publish',
] as const

export const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/

export function taskNamed(parsed: Parsed, name: string): TaskModel | undefined {
  return parsed.tasks.find((task) => task.name === name)
}

/** Returns a name that no task has: `load`, `load_2`, … */
export function freeName(taken: Iterable<string>, wanted: string): string {
  const names = new Set(taken)
  if (!names.has(wanted)) return wanted
  const stem = wanted.replace(/_\d+$/, '')
  for (let number = 2; ; number += 1) if (!names.has(`${stem}_${number}`)) return `${stem}_${number}`
}

export function addTask(parsed: Parsed, task: Plain): Parsed {
  return insert(parsed, ['tasks'], parsed.tasks.length, task)
}

/** Returns the text with a field of a task at a path within it; undefined takes it out. */
export function setField(parsed: Parsed, name: string, path: Path, value: unknown): Parsed {
  const task = taskNamed(parsed, name)
  if (!task) return parsed
  const whole: Path = ['tasks', task.index, ...path]
  if (value !== undefined) return set(parsed, whole, value, TASK_ORDER)
  const after = unset(parsed, whole)
  // A mapping that was made for one value goes with it.
  const parent = path.slice(0, -1)
  const left = parent.length ? valueIn(taskNamed(after, name)?.value, parent) : undefined
  return isPlain(left) && !Object.keys(left).length ? setField(after, name, parent, undefined) : after
}

function valueIn(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((found, key) => (isPlain(found) ? found[key] : Array.isArray(found) ? (found as unknown[])[key as number] : undefined), value)
}

/** Returns the text with an edge: `target` depends on `source`. */
export function connect(parsed: Parsed, source: string, target: string): Parsed {
  const task = taskNamed(parsed, target)
  if (!task || task.dependsOn.includes(source)) return parsed
  const path: Path = ['tasks', task.index, 'depends_on']
  const now = task.value.depends_on
  if (Array.isArray(now) && now.length) return insert(parsed, path, now.length, source)
  return set(parsed, path, [...task.dependsOn, source], TASK_ORDER)
}

export function disconnect(parsed: Parsed, source: string, target: string): Parsed {
  const task = taskNamed(parsed, target)
  if (!task) return parsed
  const path: Path = ['tasks', task.index, 'depends_on']
  const now = task.value.depends_on
  if (!Array.isArray(now)) return now === source ? unset(parsed, path) : parsed
  const left = now.filter((one) => one !== source)
  if (left.length === now.length) return parsed
  return left.length ? set(parsed, path, left) : unset(parsed, path)
}

/** Whether an edge would close a circle; a task that waits for itself does. */
export function closesCircle(tasks: readonly { name: string; dependsOn: readonly string[] }[], source: string, target: string): boolean {
  const before = new Map(tasks.map((task) => [task.name, task.dependsOn]))
  const found = new Set([source])
  for (const name of found) for (const other of before.get(name) ?? []) found.add(other)
  return found.has(target)
}

/** Returns the text with a task under another name, wherever the workflow names it. */
export function rename(parsed: Parsed, from: string, to: string): Parsed {
  const task = taskNamed(parsed, from)
  if (!task || from === to) return parsed
  let now = set(parsed, ['tasks', task.index, 'name'], to)
  for (const path of references(parsed, from)) now = set(now, path, to)
  return now
}

/** Returns the text without tasks, and without what names them. */
export function removeTasks(parsed: Parsed, names: readonly string[]): Parsed {
  const gone = new Set(names)
  let now = parsed
  for (const name of names) {
    for (const task of now.tasks) if (!gone.has(task.name)) now = disconnect(now, name, task.name)
    // From behind, so that places stay what they are; branches that lead nowhere are taken out.
    for (const path of references(now, name).toReversed()) {
      const isBranch = path.includes('then') || path.includes('else') || path.includes('default')
      if (isBranch && !gone.has(now.tasks.find((one) => one.index === path[1])?.name ?? '') && !(path.includes('cases') && typeof path.at(-1) === 'string')) now = unset(now, path)
    }
  }
  const places = now.tasks.filter((task) => gone.has(task.name)).map((task) => task.index)
  for (const index of places.toReversed()) now = unset(now, ['tasks', index])
  return now
}

/** Returns the text with a task one place further up or down in the list. */
export function moveTask(parsed: Parsed, name: string, by: -1 | 1): Parsed {
  const task = taskNamed(parsed, name)
  return task ? move(parsed, ['tasks'], task.index, task.index + by) : parsed
}

/** Returns where a workflow names one of its tasks, but for the task's own name. */
export function references(parsed: Parsed, name: string): Path[] {
  const found: Path[] = []
  const texts = (value: unknown, path: Path): void => {
    if (value === name) found.push(path)
    else if (Array.isArray(value)) value.forEach((one, at) => one === name && found.push([...path, at]))
  }
  const conditions = (value: unknown, path: Path): void => {
    if (!isPlain(value)) return
    if (value.task === name) found.push([...path, 'task'])
    for (const key of ['all', 'any']) if (Array.isArray(value[key])) (value[key] as unknown[]).forEach((one, at) => conditions(one, [...path, key, at]))
    conditions(value.not, [...path, 'not'])
  }
  for (const { index, type, value } of parsed.tasks) {
    const own: Path = ['tasks', index]
    texts(value.depends_on, [...own, 'depends_on'])
    const { params } = value
    if (!isPlain(params)) continue
    if (type === 'CONDITIONS') {
      conditions(params.when, [...own, 'params', 'when'])
      texts(params.then, [...own, 'params', 'then'])
      texts(params.else, [...own, 'params', 'else'])
    }
    if (type === 'SWITCH') {
      if (Array.isArray(params.cases)) params.cases.forEach((one: unknown, at) => isPlain(one) && texts(one.then, [...own, 'params', 'cases', at, 'then']))
      texts(params.default, [...own, 'params', 'default'])
    }
  }
  return found
}

/** Returns tasks as a document of YAML, as they stand in the text: what copying puts on the clipboard. */
export function copied(parsed: Parsed, names: readonly string[]): string {
  const chosen = parsed.tasks.filter((task) => names.includes(task.name))
  const items = chosen.map((task) => sourceOf(parsed, ['tasks', task.index]).split('\n').map((line, at) => (at === 0 ? `  - ${line}` : line && `    ${line}`)).join('\n'))
  return `tasks:\n${items.join('\n')}\n`
}

export interface Pasted {
  parsed: Parsed
  names: string[] // of the tasks that are new
}

/** Returns the text with the tasks of another; null: that is none with tasks. Names that are taken get a number. */
export function paste(parsed: Parsed, text: string): Pasted | null {
  let other = parse(text)
  if (!other.tasks.length && other.mistakes.length === 0) {
    // A list of tasks without its key, or a single one.
    other = parse(`tasks:\n${text.trim().startsWith('-') ? text : text.split('\n').map((line, at) => (at === 0 ? `- ${line}` : `  ${line}`)).join('\n')}`)
  }
  const own = other.tasks.filter((task) => typeof task.value.name === 'string' && typeof task.value.type === 'string')
  if (!own.length) return null
  const taken = new Set(parsed.tasks.map((task) => task.name))
  const inside = new Set(own.map((task) => task.name))
  for (const { name } of own) {
    const free = freeName([...taken, ...[...inside].filter((one) => one !== name)], name)
    if (free !== name) other = rename(other, name, free)
    inside.delete(name)
    inside.add(free)
  }
  const known = new Set([...taken, ...inside])
  for (const task of other.tasks) for (const name of task.dependsOn) if (!known.has(name)) other = disconnect(other, name, task.name)
  let now = parsed
  const names: string[] = []
  for (const task of other.tasks) {
    if (!inside.has(task.name)) continue
    now = insert(now, ['tasks'], now.tasks.length, task.value, sourceOf(other, ['tasks', task.index]))
    names.push(task.name)
  }
  return { parsed: now, names }
}

/** The tasks that a task of a kind leads to by itself: what its params name. */
export function branches(task: TaskModel): string[] {
  const params = isPlain(task.value.params) ? task.value.params : {}
  const cases = Array.isArray(params.cases) ? params.cases.flatMap((one: unknown) => (isPlain(one) ? textsOf(one.then) : [])) : []
  return [...textsOf(params.then), ...textsOf(params.else), ...cases, ...textsOf(params.default)]
}
