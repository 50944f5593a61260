import { describe, expect, it } from 'vitest'
import { secondsText } from '@/shared/time/seconds'
import { bandOf, labelledOf, lineOf, tickText, ticksOf } from './scale'

describe('ticksOf', () => {
  it.each([
    [0, 'count', [0, 1]],
    [3, 'count', [0, 1, 2, 3]],
    [44, 'count', [0, 20, 40, 60]],
    [1200, 'count', [0, 500, 1000, 1500]],
    [500, 'seconds', [0, 300, 600]],
    [95, 'seconds', [0, 30, 60, 90, 120]],
    [0.034, 'share', [0, 0.01, 0.02, 0.03, 0.04]],
    [400_000, 'seconds', [0, 172_800, 345_600, 518_400]],
  ] as const)('divides %s of %s', (highest, unit, ticks) => expect(ticksOf(highest, unit)).toEqual(ticks))

  it('reaches what is highest with few lines, whatever it is', () => {
    for (const unit of ['count', 'seconds', 'share'] as const) {
      for (let highest = 0.013; highest < 1e7; highest *= 1.37) {
        const ticks = ticksOf(highest, unit)
        expect(ticks.at(-1)).toBeGreaterThanOrEqual(highest * (1 - 1e-9))
        expect(ticks.length).toBeLessThanOrEqual(6)
      }
    }
  })
})

describe('lines', () => {
  it('break where nothing is known', () => {
    expect(lineOf([[0, 1], [1, 2], null, [3, 4], null, [5, 1], [6, 1]])).toBe('M0 1L1 2M3 4h0.01M5 1L6 1')
  })
  it('have a band between them where both are known', () => {
    expect(bandOf([[0, 1], [1, 1], null, [3, 1], [4, 1]], [[0, 2], [1, 2], [2, 2], [3, 2], null])).toBe('M0 1L1 1L1 2L0 2Z')
  })
})

it('labels as many places as have room', () => {
  expect(labelledOf(28, 20, 56, [1, 2, 7, 14, 28], 3)).toEqual([3, 10, 17, 24])
  expect(labelledOf(5, 100, 56, [1, 2, 7])).toEqual([0, 1, 2, 3, 4])
})

it.each([[0, '0'], [0.5, '500 ms'], [5, '5 s'], [300, '5 min'], [1200, '20 min'], [3600, '1 h'], [5400, '1 h 30 min'], [90_000, '25 h'], [432_000, '5 d'], [3900, '1 h 5 min']])('writes %s seconds at an axis as %s', (seconds, text) => expect(tickText(seconds, secondsText)).toBe(text))
