/** Values as YAML text: in one line, or in several. Pure. */
import { stringify } from 'yaml'

const PLAIN = { version: '1.2', lineWidth: 0 } as const

/** Returns a value in one line, as it may stand anywhere. */
export function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inner).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const pairs = Object.entries(value).filter(([, one]) => one !== undefined)
    return `{${pairs.map(([key, one]) => `${inner(key)}: ${inner(one)}`).join(', ')}}`
  }
  return inner(value)
}

// Within brackets the marks of flow collections need quotes, too.
function inner(value: unknown): string {
  if (typeof value === 'object' && value !== null) return inline(value)
  if (typeof value === 'string') {
    const plain = stringify(value, { ...PLAIN, blockQuote: false }).trimEnd()
    return /[[\]{},]/.test(plain) && !/^["']/.test(plain) ? JSON.stringify(value) : plain.includes('\n') ? JSON.stringify(value) : plain
  }
  return stringify(value ?? null, PLAIN).trimEnd()
}

/** Returns a scalar as the value of a key in a block: short texts in one line, others as `|`. */
export function scalar(value: unknown, indent: number, quoted: '"' | "'" | null = null): string {
  if (typeof value === 'string') {
    if (value.includes('\n') && !/[^\S\n]+$|\r|\t/m.test(value.split('\n')[0] ?? '') && isBlockable(value)) return block(value, indent)
    if (quoted === '"' || value.includes('\n')) return JSON.stringify(value)
    if (quoted === "'") return `'${value.replaceAll("'", "''")}'`
    return stringify(value, { ...PLAIN, blockQuote: false }).trimEnd()
  }
  return stringify(value ?? null, PLAIN).trimEnd()
}

function isBlockable(value: string): boolean {
  return !/[\u0000-\u0008\u000b-\u001f\u007f\u0085\u2028\u2029\ufeff]/.test(value) && /\S/.test(value)
}

function block(value: string, indent: number): string {
  const body = value.replace(/\n+$/, '')
  const ends = value.length - body.length
  const chomp = ends === 0 ? '-' : ends === 1 ? '' : '+'
  const hint = /^\n*[ ]/.test(value) ? '2' : '' // it begins with spaces, which would be taken for the indent
  const pad = ' '.repeat(indent + 2)
  const lines = `${body}${'\n'.repeat(Math.max(0, ends - 1))}`.split('\n')
  return `|${hint}${chomp}\n${lines.map((line) => (line ? pad + line : line)).join('\n')}\n`
}

/** Returns the lines of a pair in a block map, each indented; ends with a newline. */
export function pairLines(key: string, value: unknown, indent: number): string {
  const pad = ' '.repeat(indent)
  const name = inner(key)
  if (Array.isArray(value) && value.length && !isShort(value)) {
    return `${pad}${name}:\n${value.map((one) => itemLines(one, indent + 2)).join('')}`
  }
  if (isMapping(value) && Object.keys(value).length) {
    const lines = Object.entries(value).filter(([, one]) => one !== undefined).map(([inside, one]) => pairLines(inside, one, indent + 2))
    return `${pad}${name}:\n${lines.join('')}`
  }
  const text = typeof value === 'object' && value !== null ? inline(value) : scalar(value, indent)
  return `${pad}${name}: ${text}${text.endsWith('\n') ? '' : '\n'}`
}

/** Returns the lines of an item in a block sequence, each indented; ends with a newline. */
export function itemLines(value: unknown, indent: number): string {
  const pad = ' '.repeat(indent)
  if (isMapping(value) && Object.keys(value).length) {
    const lines = Object.entries(value).filter(([, one]) => one !== undefined).map(([key, one]) => pairLines(key, one, indent + 2)).join('')
    return `${pad}- ${lines.slice(indent + 2)}`
  }
  const text = typeof value === 'object' && value !== null ? inline(value) : scalar(value, indent)
  return `${pad}- ${text}${text.endsWith('\n') ? '' : '\n'}`
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isShort(value: readonly unknown[]): boolean {
  return value.every((one) => typeof one !== 'object' && !(typeof one === 'string' && one.includes('\n'))) && inline(value).length <= 80
}
