/**
 * The part of a log that is loaded: one range of bytes, however large the log is.
 *
 * Pure values. `parts` follow each other without a hole; at most MOST of them are kept, and what
 * is far from where one looks gives way.
 */
export interface Part {
  start: number // byte
  end: number
  text: string
}

export interface LogWindow {
  parts: readonly Part[]
  size: number // bytes of the whole log, as far as is known
  finished: boolean
}

export const MOST_PARTS = 32
export const EMPTY: LogWindow = { parts: [], size: 0, finished: false }

export function startOf(log: LogWindow): number {
  return log.parts[0]?.start ?? 0
}

export function endOf(log: LogWindow): number {
  return log.parts.at(-1)?.end ?? 0
}

/** Returns the window with a part before or behind it; one that does not touch it starts anew. */
export function withPart(log: LogWindow, part: Part, size: number, finished: boolean): LogWindow {
  const grown = { size: Math.max(size, part.end, log.size), finished }
  if (part.end === part.start) return { ...log, ...grown }
  if (log.parts.length && part.start === endOf(log)) {
    return { parts: [...log.parts, part].slice(-MOST_PARTS), ...grown }
  }
  if (log.parts.length && part.end === startOf(log)) {
    return { parts: [part, ...log.parts].slice(0, MOST_PARTS), ...grown }
  }
  return { parts: [part], ...grown }
}

/** Returns the lines that are loaded; the first may be the rest of one. */
export function linesOf(log: LogWindow): string[] {
  const lines = log.parts.map((part) => part.text).join('').split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line) => line.slice(line.lastIndexOf('\r', line.length - 2) + 1).replace(/\r$/, ''))
}

const bytes = new TextEncoder()

/** Returns the line (of `linesOf`) in which a byte of the log is; null: it is not loaded. */
export function lineAt(log: LogWindow, byte: number): number | null {
  let line = 0
  for (const { start, end, text } of log.parts) {
    if (byte >= end) {
      line += count(text)
      continue
    }
    if (byte < start) return null
    let at = start
    for (const one of text.split('\n')) {
      at += bytes.encode(one).length + 1
      if (byte < at) return line
      line += 1
    }
    return line
  }
  return null
}

function count(text: string): number {
  let found = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) found += 1
  return found
}
