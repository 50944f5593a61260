/** Computes the hashes of the audit's chain anew. docs/audit.md says how it is made. */
const GENESIS = '0'.repeat(64)
const LIMIT = 500

export interface Verdict {
  count: number
  /** The first place that does not fit; null: all do. */
  broken: number | null
}

/** A number as it was written: 1.0 stays 1.0. */
class Written {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

interface Link {
  position: number
  hash: string
  previous: string
  entry: Record<string, unknown> | null
}

/** Reads links; the numbers of entries keep their text. */
export function linksIn(text: string): Link[] {
  const keep = (_: string, value: unknown, context?: { source?: string }): unknown => (typeof value === 'number' ? new Written(context?.source ?? String(value)) : value)
  const links = JSON.parse(text, keep) as { position: Written; hash: string; previous: string; entry: Record<string, unknown> | null }[]
  return links.map((link) => ({ ...link, position: Number(link.position.text) }))
}

/** Returns JSON with sorted keys, without spaces, in ASCII. */
export function canonical(value: unknown): string {
  if (value instanceof Written) return value.text
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    // By code points, as the server sorts; not by UTF-16 units.
    const keys = Object.keys(value).sort(byCodePoints)
    return `{${keys.map((key) => `${ascii(key)}:${canonical((value as Record<string, unknown>)[key])}`).join(',')}}`
  }
  return typeof value === 'string' ? ascii(value) : JSON.stringify(value)
}

function ascii(text: string): string {
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (char) => (char === '\x7f' ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`))
}

function byCodePoints(a: string, b: string): number {
  const [left, right] = [[...a], [...b]]
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const step = (left[at]?.codePointAt(0) ?? 0) - (right[at]?.codePointAt(0) ?? 0)
    if (step) return step
  }
  return left.length - right.length
}

export async function hashOf(previous: string, entry: unknown): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${previous}\n${canonical(entry)}`))
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Reads all links by `fetchLinks(after, limit)` and says whether each follows from the one before. */
export async function verifyChain(fetchLinks: (after: number, limit: number) => Promise<string>, tell: (count: number) => void): Promise<Verdict> {
  let [after, count] = [0, 0]
  let previous: string | null = null
  for (;;) {
    const links = linksIn(await fetchLinks(after, LIMIT))
    if (!links.length) return { count, broken: null }
    for (const link of links) {
      // What was pruned is gone with its hashes: the first place that is left says what it follows.
      const before: string = previous ?? (link.position === 1 ? GENESIS : link.previous)
      const isNext = previous === null || link.position === after + 1
      if (!isNext || link.entry === null || (await hashOf(before, link.entry)) !== link.hash) return { count, broken: link.position }
      previous = link.hash
      after = link.position
      count += 1
    }
    tell(count)
  }
}
