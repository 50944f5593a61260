import { describe, expect, it } from 'vitest'
import { diffLines, nearChanges } from './diff'

const sides = (before: string, after: string) => {
  const lines = diffLines(before, after)
  return [lines.filter((line) => line.kind !== 'added').map((line) => line.text).join('\n'), lines.filter((line) => line.kind !== 'removed').map((line) => line.text).join('\n')]
}

describe('diffLines', () => {
  it('gives both texts back, whatever they are', () => {
    const words = ['a', 'b', 'c']
    let seed = 7
    const random = (): number => (seed = (seed * 16807) % 2147483647) / 2147483647
    for (let round = 0; round < 300; round += 1) {
      const make = (): string => Array.from({ length: Math.floor(random() * 9) }, () => words[Math.floor(random() * 3)]).join('\n')
      const [a, b] = [make(), make()]
      expect(sides(a, b)).toEqual([a, b])
    }
  })
  it('finds the shortest way', () => {
    expect(diffLines('a\nb\nc', 'a\nx\nc').map((line) => line.kind)).toEqual(['same', 'removed', 'added', 'same'])
    expect(diffLines('a\nb\nc\nd', 'b\nc\nd').filter((line) => line.kind !== 'same')).toEqual([{ kind: 'removed', text: 'a', a: 1, b: null }])
  })
  it('is nothing for the same text', () => expect(diffLines('a\nb', 'a\nb').every((line) => line.kind === 'same')).toBe(true))
})

it('leaves out what is far from changes, and says how much', () => {
  const many = Array.from({ length: 20 }, (_, index) => `line ${index}`)
  const shown = nearChanges(diffLines(many.join('\n'), many.with(10, 'other').join('\n')))
  expect(shown.map((line) => line.kind)).toEqual(['skipped', 'same', 'same', 'same', 'removed', 'added', 'same', 'same', 'same', 'skipped'])
  expect(shown[0]?.text).toBe('7')
})
