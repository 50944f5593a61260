/** A definition's text as a model: what each part says, and where it stands. Pure. */
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node, type Pair, type YAMLMap, type YAMLSeq } from 'yaml'

export type Path = readonly (string | number)[]
export type Plain = Record<string, unknown>

export interface TaskModel {
  name: string
  type: string
  dependsOn: readonly string[]
  index: number // its place in `tasks`
  value: Plain
}

export interface Mistake {
  line: number // from 1
  message: string
}

export interface Parsed {
  text: string
  doc: Document
  /** Null: the text is not a mapping (yet), or has mistakes. */
  value: Plain | null
  tasks: readonly TaskModel[]
  mistakes: readonly Mistake[]
  milliseconds: number // that parsing took
}

// As the server reads: YAML 1.2's core schema, with merge keys.
export const READING = { version: '1.2', merge: true, uniqueKeys: true, strict: true, logLevel: 'silent' } as const

/** Returns what a text says. Never throws: what is wrong with it are its mistakes. */
export function parse(text: string): Parsed {
  const began = performance.now()
  const lines = new LineCounter()
  const doc = parseDocument(text, { ...READING, lineCounter: lines, prettyErrors: false }) as Document
  const mistakes: Mistake[] = doc.errors.map((error) => ({ line: lines.linePos(error.pos[0]).line, message: error.message }))
  let value: Plain | null = null
  if (!mistakes.length) {
    try {
      const found: unknown = doc.toJS({ maxAliasCount: 10_000 })
      if (isPlain(found)) value = found
      else if (found !== null) mistakes.push({ line: 1, message: 'A definition is a mapping: name: …, tasks: …' })
    } catch (error) {
      mistakes.push({ line: 1, message: String(error) })
    }
  }
  return { text, doc, value, tasks: tasksOf(value), mistakes, milliseconds: performance.now() - began }
}

/** Returns the tasks of a definition, of any that is written down. */
export function tasksOf(value: Plain | null): TaskModel[] {
  const list = value?.tasks
  if (!Array.isArray(list)) return []
  return list.flatMap((item: unknown, index): TaskModel[] => {
    if (!isPlain(item)) return []
    return [{ name: text(item.name) || `#${index + 1}`, type: text(item.type), dependsOn: textsOf(item.depends_on), index, value: item }]
  })
}

/** One text or a list of them, as a list. */
export function textsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(text).filter(Boolean)
  return value === null || value === undefined || value === '' ? [] : [text(value)].filter(Boolean)
}

export function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}

/** Returns the value at a path; undefined: there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  let found = value
  for (const key of path) {
    if (Array.isArray(found)) found = (found as unknown[])[key as number]
    else if (isPlain(found)) found = found[key]
    else return undefined
  }
  return found
}

/** Returns the line (from 1) at which the value of a path begins; null: it has none of its own. */
export function lineOf(parsed: Parsed, path: Path): number | null {
  for (let length = path.length; length > 0; length -= 1) {
    const start = startOf(parsed.doc, path.slice(0, length))
    if (start !== null) return parsed.text.slice(0, start).split('\n').length
  }
  return null
}

/** Returns the path of a line's innermost value; the other direction of `lineOf`. */
export function pathAt(parsed: Parsed, offset: number): Path {
  const path: (string | number)[] = []
  let node: unknown = parsed.doc.contents
  for (;;) {
    if (isMap(node)) {
      const pair = (node as YAMLMap<Node, Node | null>).items.findLast((one) => (one.key.range?.[0] ?? Infinity) <= offset)
      if (!pair || !isScalar(pair.key)) return path
      path.push(String(pair.key.value))
      node = pair.value
    } else if (isSeq(node)) {
      const { items } = node as YAMLSeq<Node>
      const index = items.findLastIndex((one) => (one.range?.[0] ?? Infinity) <= offset)
      if (index < 0) return path
      path.push(index)
      node = items[index]
    } else {
      return path
    }
  }
}

function startOf(doc: Document, path: Path): number | null {
  const last = path.at(-1)
  const parent = nodeAt(doc, path.slice(0, -1))
  if (isMap(parent)) return pairOf(parent, String(last))?.key.range?.[0] ?? null
  if (isSeq(parent) && typeof last === 'number') return (parent.items[last] as Node | undefined)?.range?.[0] ?? null
  return null
}

/** Returns the node at a path, without following aliases; null: there is none. */
export function nodeAt(doc: Document, path: Path): Node | null {
  let node: unknown = doc.contents
  for (const key of path) {
    if (isMap(node)) node = pairOf(node, String(key))?.value
    else if (isSeq(node) && typeof key === 'number') node = node.items[key]
    else return null
  }
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node : null
}

export function pairOf(map: YAMLMap, key: string): Pair<Node, Node | null> | undefined {
  return (map as YAMLMap<Node, Node | null>).items.find((pair) => isScalar(pair.key) && String(pair.key.value) === key)
}
