/**
 * Changes of a definition's text that leave every other byte as it is. Pure.
 *
 * Each change is checked: the new text is read, and has to say what was meant. Where the shape of
 * the text defeats us, the library that reads it writes that one document anew, with its comments;
 * if even this says something else (anchors that several places share), the change is refused.
 */
import { isAlias, isMap, isScalar, isSeq, parseDocument, type Node, type Pair, type YAMLMap, type YAMLSeq } from 'yaml'
import { isPlain, nodeAt, pairOf, parse, READING, valueAt, type Parsed, type Path, type Plain } from './parse'
import { inline, itemLines, pairLines, scalar } from './render'

/** The text cannot be changed like that without changing more. */
export class NotPatchable extends Error {
  readonly path: Path

  constructor(path: Path) {
    super(path.join('.'))
    this.path = path
  }
}

interface Edit {
  from: number
  to: number
  insert: string
}

type Map_ = YAMLMap<Node, Node | null>
type Seq_ = YAMLSeq<Node | null>

/** Returns the text with a value at a path; keys before `order` says where a new one stands. */
export function set(parsed: Parsed, path: Path, value: unknown, order: readonly string[] = []): Parsed {
  const before = valueAt(parsed.value, path)
  if (same(before, value)) return parsed
  if (value === undefined) return unset(parsed, path)
  const node = nodeAt(parsed.doc, path)
  // Of lists and mappings that are there only what differs is written.
  if (isPlain(before) && isPlain(value) && Object.keys(value).length && isMap(node)) return setMapping(parsed, path, before, value)
  if (Array.isArray(before) && Array.isArray(value) && value.length && isSeq(node)) return setList(parsed, path, before, value)
  return checked(parsed, () => setEdits(parsed, path, value, order), (whole) => putIn(whole, path, value), path)
}

function setMapping(parsed: Parsed, path: Path, before: Plain, after: Plain): Parsed {
  let now = parsed
  for (const [key, value] of Object.entries(after)) now = set(now, [...path, key], value)
  for (const key of Object.keys(before)) if (!(key in after)) now = unset(now, [...path, key])
  return now
}

function setList(parsed: Parsed, path: Path, before: readonly unknown[], after: readonly unknown[]): Parsed {
  let head = 0
  while (head < before.length && head < after.length && same(before[head], after[head])) head += 1
  let tail = 0
  while (tail < Math.min(before.length, after.length) - head && same(before.at(-1 - tail), after.at(-1 - tail))) tail += 1
  const shared = Math.min(before.length, after.length) - head - tail
  let now = parsed
  for (let at = head; at < head + shared; at += 1) now = set(now, [...path, at], after[at])
  for (let at = before.length - tail - 1; at >= head + shared; at -= 1) now = unset(now, [...path, at])
  for (let at = head + shared; at < after.length - tail; at += 1) now = insert(now, path, at, after[at])
  return now
}

/** Returns the text without the value at a path. A mapping or list that becomes empty stays. */
export function unset(parsed: Parsed, path: Path): Parsed {
  if (valueAt(parsed.value, path) === undefined) return parsed
  return checked(parsed, () => unsetEdits(parsed, path), (whole) => takeOut(whole, path), path)
}

/** Returns the text with a new item in a list. `source`: its lines, instead of what `value` would be written as. */
export function insert(parsed: Parsed, path: Path, index: number, value: unknown, source?: string): Parsed {
  if (!Array.isArray(valueAt(parsed.value, path))) return set(parsed, path, [value])
  const edits = (): Edit[] | null => insertEdits(parsed, path, index, value, source)
  return checked(parsed, edits, (whole) => putItem(whole, path, index, value), path)
}

/** Returns the text with an item of a list in another place, its lines and comments as they are. */
export function move(parsed: Parsed, path: Path, from: number, to: number): Parsed {
  const list = valueAt(parsed.value, path)
  if (!Array.isArray(list) || from === to || to < 0 || to >= list.length) return parsed
  return checked(parsed, () => moveEdits(parsed, path, from, to), (whole) => {
    const items = valueAt(whole, path) as unknown[]
    items.splice(to, 0, ...items.splice(from, 1))
    return whole
  }, path)
}

/** Returns the lines of an item as they stand in the text, without its dash and indent. */
export function sourceOf(parsed: Parsed, path: Path): string {
  const node = nodeAt(parsed.doc, path)
  const start = node?.range?.[0] ?? 0
  const end = contentEnd(parsed.text, node)
  const column = columnOf(parsed.text, start)
  const lines = parsed.text.slice(start, end).replace(/\n+$/, '').split('\n')
  return lines.map((line, at) => (at === 0 ? line : line.slice(Math.min(column, line.length - line.trimStart().length)))).join('\n')
}

// -- checks -------------------------------------------------------------------------------------

function checked(parsed: Parsed, make: () => Edit[] | null, model: (whole: Plain) => Plain, path: Path): Parsed {
  const wanted = model(cloned(parsed.value ?? {}))
  const edits = make()
  if (edits) {
    const after = parse(applied(parsed.text, edits))
    if (!after.mistakes.length && same(after.value ?? {}, wanted)) return after
  }
  const anew = rewritten(parsed.text, parsed.value ?? {}, wanted)
  if (anew) return anew
  throw new NotPatchable(path)
}

function rewritten(text: string, before: Plain, wanted: Plain): Parsed | null {
  const doc = parseDocument(text, READING)
  if (doc.errors.length) return null
  for (const [path, value] of differences(before, wanted, [])) {
    if (value === undefined) doc.deleteIn(path)
    else doc.setIn(path, doc.createNode(value))
  }
  const after = parse(doc.toString({ lineWidth: 0 }))
  return !after.mistakes.length && same(after.value ?? {}, wanted) ? after : null
}

function* differences(before: unknown, after: unknown, path: Path): Generator<[Path, unknown]> {
  if (same(before, after)) return
  if (isPlain(before) && isPlain(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) yield* differences(before[key], after[key], [...path, key])
  } else {
    yield [path, after]
  }
}

function applied(text: string, edits: readonly Edit[]): string {
  let found = text
  for (const { from, to, insert: put } of edits.toSorted((a, b) => b.from - a.from)) found = found.slice(0, from) + put + found.slice(to)
  return found
}

/** Whether two plain values say the same. */
export function same(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (Array.isArray(one) && Array.isArray(other)) return one.length === other.length && one.every((value, at) => same(value, other[at]))
  if (!isPlain(one) || !isPlain(other)) return false
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => key in other && same(one[key], other[key]))
}

/** A copy in which nothing is shared: what an anchor gives to several places is there several times. */
export function cloned<T>(value: T): T {
  if (Array.isArray(value)) return value.map(cloned) as T
  if (isPlain(value)) return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, cloned(one)])) as T
  return value
}

// -- values -------------------------------------------------------------------------------------

function putIn(whole: Plain, path: Path, value: unknown): Plain {
  let into: unknown = whole
  path.forEach((key, at) => {
    const place = into as Record<string | number, unknown>
    if (at === path.length - 1) place[key] = cloned(value)
    else into = place[key] ??= typeof path[at + 1] === 'number' ? [] : {}
  })
  return whole
}

function takeOut(whole: Plain, path: Path): Plain {
  const parent = valueAt(whole, path.slice(0, -1))
  const last = path.at(-1)
  if (Array.isArray(parent)) parent.splice(last as number, 1)
  else if (isPlain(parent)) delete parent[last as string]
  return whole
}

function putItem(whole: Plain, path: Path, index: number, value: unknown): Plain {
  ;(valueAt(whole, path) as unknown[]).splice(index, 0, cloned(value))
  return whole
}

// -- edits --------------------------------------------------------------------------------------

function setEdits(parsed: Parsed, path: Path, value: unknown, order: readonly string[]): Edit[] | null {
  const { text, doc } = parsed
  const parent = nodeAt(doc, path.slice(0, -1))
  const key = path.at(-1)
  if (parent === null || isAlias(parent)) {
    const alias = path.findIndex((_, at) => isAlias(nodeAt(doc, path.slice(0, at))))
    if (alias > 0) {
      // What the anchor gives is written out here, with the change: other places keep it as it was.
      const whole = putIn({ it: cloned(valueAt(parsed.value, path.slice(0, alias))) }, ['it', ...path.slice(alias)], value)
      return setEdits(parsed, path.slice(0, alias), whole.it, order)
    }
    if (path.length <= 1) {
      const gap = text && !text.endsWith('\n') ? '\n' : ''
      return [{ from: text.length, to: text.length, insert: gap + pairLines(String(key), value, 0) }]
    }
    return setEdits(parsed, path.slice(0, -1), typeof key === 'number' ? [value] : { [key as string]: value }, order)
  }
  if (isMap(parent)) {
    const map = parent as Map_
    const pair = pairOf(map, String(key))
    if (!pair) return addPair(parsed, path.slice(0, -1), map, String(key), value, order)
    return replaceValue(parsed, path, map, pair, value)
  }
  if (isSeq(parent) && typeof key === 'number') {
    const item = parent.items[key] as Node | undefined
    if (!item?.range) return null
    if (isFlow(parent)) return [{ from: item.range[0], to: item.range[1], insert: quotedAs(text[item.range[0]], value) }]
    const indent = columnOf(text, parent.range?.[0] ?? 0)
    if (isScalar(item) && !isCollection(value)) return [scalarEdit(text, item, value, indent)]
    const lines = itemRegion(text, parent as Seq_, key)
    return lines ? [{ ...lines, insert: itemLines(value, indent) }] : null
  }
  return null
}

function replaceValue(parsed: Parsed, path: Path, map: Map_, pair: Pair<Node, Node | null>, value: unknown): Edit[] | null {
  const { text } = parsed
  const old = pair.value
  if (isFlow(map)) {
    if (typeof value === 'string' && value.includes('\n')) return unfolded(parsed, path, value)
    if (!old?.range || old.range[0] === old.range[1]) {
      const colon = colonOf(text, pair)
      return colon === null ? null : [{ from: colon + 1, to: colon + 1, insert: ` ${inline(value)}` }]
    }
    return [{ from: old.range[0], to: old.range[1], insert: quotedAs(text[old.range[0]], value) }]
  }
  const indent = columnOf(text, pair.key.range?.[0] ?? 0)
  if (isScalar(old) && old.range && old.range[0] < old.range[1] && !old.anchor && !isLong(value)) return [scalarEdit(text, old, value, indent)]
  if (isFlowNode(old) && !isLong(value)) return [{ from: old.range?.[0] ?? 0, to: old.range?.[1] ?? 0, insert: inline(value) }]
  if (isAlias(old) && old.range && !isLong(value)) return [{ from: old.range[0], to: old.range[1], insert: isCollection(value) ? inline(value) : scalar(value, indent) }]
  // The value takes other lines than before: all behind the colon is written anew.
  const colon = colonOf(text, pair)
  if (colon === null) return null
  const end = lineEnd(text, Math.max(colon + 1, contentEnd(text, old)))
  const lines = pairLines('k', value, indent)
  return [{ from: colon, to: end, insert: lines.slice(lines.indexOf(':')) }]
}

/** A value in brackets, with the quotes that stood there. */
function quotedAs(quote: string | undefined, value: unknown): string {
  if (typeof value !== 'string' || value.includes('\n')) return inline(value)
  if (quote === "'") return `'${value.replaceAll("'", "''")}'`
  return quote === '"' ? JSON.stringify(value) : inline(value)
}

function scalarEdit(text: string, old: Node, value: unknown, indent: number): Edit {
  const [from, to] = old.range ?? [0, 0]
  const source = text.slice(from, to)
  const quoted = source.startsWith('"') ? '"' : source.startsWith("'") ? "'" : null
  const put = isCollection(value) ? inline(value) : scalar(value, indent, quoted)
  if (source.endsWith('\n')) return { from, to, insert: put.endsWith('\n') ? put : `${put}\n` }
  if (!put.endsWith('\n')) return { from, to, insert: put }
  // A text of several lines takes the place of one in one line; a comment goes behind its mark.
  const end = lineEnd(text, to)
  const comment = text.slice(to, end).trim()
  return { from, to: end, insert: comment ? put.replace('\n', ` ${comment}\n`) : put }
}

function addPair(parsed: Parsed, path: Path, map: Map_, key: string, value: unknown, order: readonly string[]): Edit[] | null {
  const { text } = parsed
  const before = predecessor(map, key, order)
  if (isFlow(map)) {
    if (typeof value === 'string' && value.includes('\n')) return unfolded(parsed, [...path, key], value)
    const put = `${inline(key)}: ${inline(value)}`
    const last = before ?? map.items.at(-1)
    const end = last ? flowEnd(text, last) : (map.range?.[0] ?? 0) + 1
    return [{ from: end, to: end, insert: last ? `, ${put}` : put }]
  }
  const first = map.items[0]
  if (!first) return null
  const indent = columnOf(text, first.key.range?.[0] ?? 0)
  const last = before ?? map.items.at(-1)
  if (!last) return null
  const end = lineEnd(text, pairEnd(text, last))
  const gap = end > 0 && text[end - 1] !== '\n' ? '\n' : ''
  return [{ from: end, to: end, insert: gap + pairLines(key, value, indent) }]
}

/** The last pair that stands before a new one by the usual order of keys. */
function predecessor(map: Map_, key: string, order: readonly string[]): Pair<Node, Node | null> | undefined {
  const rank = order.indexOf(key)
  if (rank < 0) return undefined
  return map.items.findLast((pair) => {
    const other = order.indexOf(String(isScalar(pair.key) ? pair.key.value : ''))
    return other >= 0 && other < rank
  })
}

/** A text of several lines has no place in brackets: the task that is written in them becomes lines. */
function unfolded(parsed: Parsed, path: Path, value: unknown): Edit[] | null {
  const { text, doc } = parsed
  for (let length = 0; length < path.length; length += 1) {
    const node = nodeAt(doc, path.slice(0, length))
    if (!isMap(node) || !isFlow(node) || !node.range) continue
    if (text.slice(node.range[0], node.range[1]).includes('#')) return null
    const own = path.slice(0, length)
    const whole = putIn({ it: cloned(valueAt(parsed.value, own)) }, ['it', ...path.slice(length)], value)
    const holder = nodeAt(doc, own.slice(0, -1))
    const key = own.at(-1)
    if (isSeq(holder) && typeof key === 'number' && !isFlow(holder)) {
      const region = itemRegion(text, holder as Seq_, key)
      return region ? [{ ...region, insert: itemLines(whole.it, columnOf(text, holder.range?.[0] ?? 0)) }] : null
    }
    if (isMap(holder) && !isFlow(holder)) {
      const pair = pairOf(holder, String(key))
      return pair ? blockOf(text, pair, whole.it) : null
    }
    return null
  }
  return null
}

function blockOf(text: string, pair: Pair<Node, Node | null>, value: unknown): Edit[] | null {
  const colon = colonOf(text, pair)
  if (colon === null) return null
  const end = lineEnd(text, contentEnd(text, pair.value))
  const lines = pairLines('k', value, columnOf(text, pair.key.range?.[0] ?? 0))
  return [{ from: colon, to: end, insert: lines.slice(lines.indexOf(':')) }]
}

function unsetEdits(parsed: Parsed, path: Path): Edit[] | null {
  const { text, doc } = parsed
  const parent = nodeAt(doc, path.slice(0, -1))
  const key = path.at(-1)
  if (isMap(parent)) {
    const map = parent as Map_
    const at = map.items.findIndex((pair) => isScalar(pair.key) && String(pair.key.value) === String(key))
    const pair = map.items[at]
    if (!pair) return null
    if (isFlow(map)) return [flowGap(text, map.items.map((one): [number, number] => [one.key.range?.[0] ?? 0, flowEnd(text, one)]), at)]
    const start = pair.key.range?.[0] ?? 0
    if (map.items.length === 1) return emptied(text, start, pairEnd(text, pair), '{}')
    if (text.slice(lineStart(text, start), start).trim()) {
      const next = map.items[at + 1]?.key.range?.[0] // it stands behind a dash: the next one takes its place
      return next === undefined ? null : [{ from: start, to: next, insert: '' }]
    }
    return [{ from: lineStart(text, start), to: lineEnd(text, pairEnd(text, pair)), insert: '' }]
  }
  if (isSeq(parent) && typeof key === 'number') {
    const seq = parent as Seq_
    if (isFlow(seq)) return [flowGap(text, seq.items.map((one): [number, number] => [one?.range?.[0] ?? 0, one?.range?.[1] ?? 0]), key)]
    if (seq.items.length === 1) return emptied(text, seq.range?.[0] ?? 0, contentEnd(text, seq), '[]')
    const region = itemRegion(text, seq, key)
    if (!region) return null
    // Of two blank lines that meet one is enough.
    const blank = /^[^\S\n]*\n/.exec(text.slice(region.to))
    const isAfterBlank = region.from === 0 || /\n[^\S\n]*\n$/.test(text.slice(0, region.from))
    return [{ ...region, to: region.to + (blank && isAfterBlank ? blank[0].length : 0), insert: '' }]
  }
  return null
}

/** What was the whole of a block becomes empty brackets, in the place where it began. */
function emptied(text: string, start: number, end: number, brackets: string): Edit[] {
  const from = lineStart(text, start)
  const isOwnLine = !text.slice(from, start).trim() && from > 0
  const before = isOwnLine ? from - 1 : start
  const rest = text.slice(end, lineEnd(text, end)).trim()
  return [{ from: before, to: lineEnd(text, end), insert: `${isOwnLine ? ' ' : ''}${brackets}${rest ? ` ${rest}` : ''}\n` }]
}

function flowGap(text: string, items: readonly [number, number][], at: number): Edit {
  const [start, end] = items[at] ?? [0, 0]
  const next = items[at + 1]
  if (next) return { from: start, to: next[0], insert: '' }
  const before = items[at - 1]
  if (before) return { from: before[1], to: end, insert: '' }
  const comma = /^\s*,/.exec(text.slice(end))
  return { from: start, to: end + (comma?.[0].length ?? 0), insert: '' }
}

function insertEdits(parsed: Parsed, path: Path, index: number, value: unknown, source?: string): Edit[] | null {
  const { text, doc } = parsed
  const seq = nodeAt(doc, path)
  if (!isSeq(seq)) return setEdits(parsed, path, [value], [])
  const items = (seq as Seq_).items
  if (isFlow(seq)) {
    if (!items.length) {
      if (path.length === 1 && isCollection(value)) {
        const pair = isMap(doc.contents) ? pairOf(doc.contents, String(path[0])) : undefined
        return pair ? blockOf(text, pair, [value]) : null
      }
      const at = (seq.range?.[0] ?? 0) + 1
      return [{ from: at, to: at, insert: inline(value) }]
    }
    const next = items[index]?.range
    if (next) return [{ from: next[0], to: next[0], insert: `${inline(value)}, ` }]
    const end = items.at(-1)?.range?.[1] ?? 0
    return [{ from: end, to: end, insert: `, ${inline(value)}` }]
  }
  const indent = columnOf(text, seq.range?.[0] ?? 0)
  const lines = source === undefined ? itemLines(value, indent) : indented(source, indent)
  const at = index < items.length ? itemRegion(text, seq as Seq_, index)?.from : itemRegion(text, seq as Seq_, items.length - 1)?.to
  if (at === undefined) return null
  const gap = at > 0 && text[at - 1] !== '\n' ? '\n' : ''
  const loose = isLoose(text, seq as Seq_) && isCollection(value)
  const insertion = index < items.length ? `${lines}${loose ? '\n' : ''}` : `${loose ? '\n' : ''}${lines}`
  return [{ from: at, to: at, insert: gap + insertion }]
}

/** Whether blank lines stand between the items. */
function isLoose(text: string, seq: Seq_): boolean {
  const last = itemRegion(text, seq, seq.items.length - 1)
  return seq.items.length > 1 && last !== null && /\n[^\S\n]*\n(?:[^\S\n]*#[^\n]*\n)*$/.test(text.slice(0, last.from))
}

function indented(source: string, indent: number): string {
  const pad = ' '.repeat(indent)
  const [first = '', ...rest] = source.split('\n')
  return `${pad}- ${first}\n${rest.map((line) => (line ? `${pad}  ${line}` : line) + '\n').join('')}`
}

function moveEdits(parsed: Parsed, path: Path, from: number, to: number): Edit[] | null {
  const seq = nodeAt(parsed.doc, path)
  if (!isSeq(seq) || isFlow(seq)) return null
  const own = itemRegion(parsed.text, seq as Seq_, from)
  const other = itemRegion(parsed.text, seq as Seq_, to)
  if (!own || !other) return null
  const lines = parsed.text.slice(own.from, own.to)
  const others = parsed.text.slice(other.from, other.to)
  const full = (one: string): string => (one.endsWith('\n') ? one : `${one}\n`)
  if (Math.abs(from - to) === 1) {
    // Neighbours change places; what stands between them stays.
    return [{ ...own, insert: full(others) }, { ...other, insert: full(lines) }]
  }
  const at = to > from ? other.to : other.from
  return [{ ...own, insert: '' }, { from: at, to: at, insert: full(lines) }]
}

// -- places -------------------------------------------------------------------------------------

function isFlow(node: { flow?: boolean | undefined }): boolean {
  return node.flow === true
}

function isFlowNode(node: Node | null): node is Map_ | Seq_ {
  return (isMap(node) || isSeq(node)) && isFlow(node)
}

function isCollection(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** Whether a value is written in several lines. */
function isLong(value: unknown): boolean {
  if (!isCollection(value)) return false
  return pairLines('k', value, 0).trimEnd().includes('\n')
}

function columnOf(text: string, offset: number): number {
  return offset - lineStart(text, offset)
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1
}

/** The end of the line, behind its newline; an offset that is at the start of a line stays there. */
function lineEnd(text: string, offset: number): number {
  if (offset > 0 && text[offset - 1] === '\n') return offset
  const end = text.indexOf('\n', offset)
  return end < 0 ? text.length : end + 1
}

function colonOf(text: string, pair: Pair<Node, Node | null>): number | null {
  const from = pair.key.range?.[1]
  if (from === undefined) return null
  const found = text.indexOf(':', from)
  return found >= 0 && !text.slice(from, found).trim() ? found : null
}

/** Where what a node says ends; comments and blank lines behind it are not its own. */
function contentEnd(text: string, node: Node | null): number {
  if (!node?.range) return 0
  if (isMap(node) && !isFlow(node)) {
    const last = (node as Map_).items.at(-1)
    return last ? pairEnd(text, last) : node.range[1]
  }
  if (isSeq(node) && !isFlow(node)) {
    const last = (node as Seq_).items.at(-1)
    return last ? Math.max(contentEnd(text, last), node.range[0] + 1) : node.range[1]
  }
  if (isScalar(node) && node.range[1] > node.range[0] && text[node.range[1] - 1] === '\n') {
    // Blank lines at the end of a block are part of it only if it keeps them.
    const head = text.slice(node.range[0], text.indexOf('\n', node.range[0]))
    if (/^[|>]\d?\+/.test(head)) return node.range[1]
    const body = text.slice(node.range[0], node.range[1])
    return node.range[0] + body.trimEnd().length + 1
  }
  return node.range[1]
}

function pairEnd(text: string, pair: Pair<Node, Node | null>): number {
  const colon = colonOf(text, pair)
  return Math.max(contentEnd(text, pair.value), colon === null ? (pair.key.range?.[1] ?? 0) : colon + 1)
}

function flowEnd(text: string, pair: Pair<Node, Node | null>): number {
  const own = pair.value?.range
  if (own && own[1] > own[0]) return own[1]
  const colon = colonOf(text, pair)
  return colon === null ? (pair.key.range?.[1] ?? 0) : colon + 1
}

/** The lines of an item of a block sequence, from its dash to the end of its last line. */
function itemRegion(text: string, seq: Seq_, index: number): { from: number; to: number } | null {
  const item = seq.items[index]
  if (!item?.range) return null
  const column = columnOf(text, seq.range?.[0] ?? 0)
  let from = lineStart(text, item.range[0])
  // The dash may stand in a line before, alone or with a comment or an anchor.
  while (from > 0 && text[from + column] !== '-') from = lineStart(text, from - 1)
  if (text[from + column] !== '-' || text.slice(from, from + column).trim()) return null
  return { from, to: lineEnd(text, contentEnd(text, item)) }
}
