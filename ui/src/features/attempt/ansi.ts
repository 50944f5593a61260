/** Colours that programs write into logs (ANSI), as spans. All else of a line is plain text. Pure. */
export interface Piece {
  text: string
  classes: string
}

const ESCAPE = /\u001b\[([0-9;]*)([A-Za-z])/g
const OTHER = /[\u0000-\u0008\u000b-\u001f\u007f]/g

/** Returns the pieces of a line; `codes` holds what earlier lines have switched on. */
export function pieces(line: string): Piece[] {
  const found: Piece[] = []
  let codes: number[] = []
  let from = 0
  for (const match of line.matchAll(ESCAPE)) {
    add(found, line.slice(from, match.index), codes)
    from = match.index + match[0].length
    if (match[2] === 'm') codes = next(codes, match[1] ?? '')
  }
  add(found, line.slice(from), codes)
  return found
}

function add(found: Piece[], text: string, codes: readonly number[]): void {
  const clean = text.replace(OTHER, '')
  if (clean) found.push({ text: clean, classes: codes.map((code) => `ansi-${code}`).join(' ') })
}

function next(codes: readonly number[], text: string): number[] {
  let after = [...codes]
  for (const code of (text || '0').split(';').map(Number)) {
    if (code === 0) after = []
    else if (code === 39) after = after.filter((one) => one < 30)
    else if (code === 22) after = after.filter((one) => one !== 1)
    else if (code === 1 || (code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      after = [...after.filter((one) => (code === 1 ? one !== 1 : one < 30)), code]
    }
  }
  return after
}
