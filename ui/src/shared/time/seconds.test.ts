import { expect, it } from 'vitest'
import { countText, differenceText, growthText, percentText, secondsText } from './seconds'

it.each([
  [null, '–'], [0, '0 s'], [0.02, '20 ms'], [0.94, '940 ms'], [0.96, '1.0 s'], [12.4, '12 s'], [3840, '1 h 04 min'],
])('%s seconds are %s', (seconds, text) => expect(secondsText(seconds)).toBe(text))

it.each([[null, '–'], [0, '±0 s'], [12, '+12 s'], [-180, '−3 min 00 s']])('a difference of %s is %s', (seconds, text) => expect(differenceText(seconds)).toBe(text))

it.each([[null, '–'], [0, '0 %'], [0.0357, '3.6 %'], [0.0004, '0.04 %'], [1, '100 %'], [-0.125, '−13 %']])('a share of %s is %s', (share, text) => expect(percentText(share)).toBe(text))

it.each([
  [112, 100, '+12 %'], [97, 100, '−3 %'], [100, 100, '±0 %'], [420, 100, '×4.2'], [5000, 100, '×50'], [5, 0, null], [null, 5, null], [5, null, null],
])('%s after %s is %s', (now, before, text) => expect(growthText(now, before)).toBe(text))

it('writes counts as the language does', () => {
  expect(countText(9600, 'en')).toBe('9,600')
  expect(countText(1_240_000, 'en')).toBe('1.2m')
  expect(countText(2.34, 'en')).toBe('2.3')
  expect(countText(null, 'en')).toBe('–')
})
