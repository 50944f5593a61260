import { expect, it } from 'vitest'
import { isDuration, writtenDuration } from './duration'

it.each([
  [0, '0s'],
  [30, '30s'],
  [0.5, '0.5s'],
  [900, '15m'],
  [5400, '1h30m'],
  [90_061, '25h1m1s'],
  [93_600, '26h'],
  [172_800, '2d'],
])('%d seconds are %s', (seconds, text) => {
  expect(writtenDuration(seconds)).toBe(text)
  expect(isDuration(text)).toBe(true)
})

it.each(['90', '1.5h', '1h 30m', '500ms', ' 10m '])('%s is a length of time', (text) => expect(isDuration(text)).toBe(true))
it.each(['', 'soon', '-5m', '30m1h', '5 minutes', 'm'])('%s is none', (text) => expect(isDuration(text)).toBe(false))
