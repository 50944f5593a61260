import { describe, expect, it } from 'vitest'
import { pieces } from './ansi'
import { EMPTY, endOf, lineAt, linesOf, MOST_PARTS, startOf, withPart } from './window'

describe('pieces', () => {
  it('turns colours into classes, and nothing else into anything', () => {
    expect(pieces('a \u001b[1;31mbad\u001b[0m <b>')).toEqual([
      { text: 'a ', classes: '' },
      { text: 'bad', classes: 'ansi-1 ansi-31' },
      { text: ' <b>', classes: '' },
    ])
  })
  it('drops what moves cursors', () => {
    expect(pieces('\u001b[2Kx\u001b[10;3Hy\u0007')).toEqual([
      { text: 'x', classes: '' },
      { text: 'y', classes: '' },
    ])
  })
})

describe('window', () => {
  const part = (start: number, text: string) => ({ start, end: start + text.length, text })
  it('grows at both ends', () => {
    let log = withPart(EMPTY, part(100, 'b\n'), 200, false)
    log = withPart(log, part(98, 'a\n'), 200, false)
    log = withPart(log, part(102, 'c\n'), 200, false)
    expect(linesOf(log)).toEqual(['a', 'b', 'c'])
    expect([startOf(log), endOf(log)]).toEqual([98, 104])
  })
  it('starts anew with a part from elsewhere', () => {
    const log = withPart(withPart(EMPTY, part(0, 'a\n'), 500, false), part(400, 'z\n'), 500, false)
    expect(linesOf(log)).toEqual(['z'])
  })
  it('keeps a bounded number of parts, those at the end that grows', () => {
    let log = EMPTY
    for (let n = 0; n < MOST_PARTS + 8; n += 1) log = withPart(log, part(n * 2, 'x\n'), n * 2 + 2, false)
    expect(log.parts).toHaveLength(MOST_PARTS)
    expect(startOf(log)).toBe(16)
  })
  it('shows the last state of a line that rewrites itself', () => {
    expect(linesOf(withPart(EMPTY, part(0, '10%\r50%\r100%\r\nend\n'), 20, true))).toEqual(['100%', 'end'])
  })
})

describe('lineAt', () => {
  const log = { ...EMPTY, parts: [{ start: 100, end: 106, text: 'é1\nb\n' }, { start: 106, end: 110, text: 'c\nd\n' }] }
  it.each([[99, null], [100, 0], [103, 0], [104, 1], [106, 2], [108, 3], [110, null]])('byte %i is in line %s', (byte, line) => expect(lineAt(log, byte)).toBe(line))
})
