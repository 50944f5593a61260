import { describe, expect, it } from 'vitest'
import { cronOf, rhythmOf, turned, type Rhythm } from './cron'

describe('rhythms', () => {
  it.each<[string, Rhythm, string?]>([
    ['0 0/15 * * * ?', { kind: 'minutes', every: 15 }],
    ['*/5 * * * *', { kind: 'minutes', every: 5 }, '0 0/5 * * * ?'],
    ['0 * * * * ?', { kind: 'minutes', every: 1 }],
    ['0 30 * * * ?', { kind: 'hours', every: 1, minute: 30 }],
    ['0 5 0/2 * * ?', { kind: 'hours', every: 2, minute: 5 }],
    ['0 30 2 * * ?', { kind: 'days', hour: 2, minute: 30 }],
    ['0 30 2 ? * *', { kind: 'days', hour: 2, minute: 30 }, '0 30 2 * * ?'],
    ['30 2 * * *', { kind: 'days', hour: 2, minute: 30 }, '0 30 2 * * ?'],
    ['0 0 6 ? * MON-FRI', { kind: 'weekdays', days: [2, 3, 4, 5, 6], hour: 6, minute: 0 }, '0 0 6 ? * MON,TUE,WED,THU,FRI'],
    ['0 6 * * 0,6', { kind: 'weekdays', days: [1, 7], hour: 6, minute: 0 }, '0 0 6 ? * SUN,SAT'],
    ['0 6 * * 7', { kind: 'weekdays', days: [1], hour: 6, minute: 0 }, '0 0 6 ? * SUN'],
    ['0 0 6 ? * 1', { kind: 'weekdays', days: [1], hour: 6, minute: 0 }, '0 0 6 ? * SUN'],
    ['0 0 6 1 * ?', { kind: 'months', day: 1, hour: 6, minute: 0 }],
    ['0 0 6 L * ? *', { kind: 'months', day: 'L', hour: 6, minute: 0 }, '0 0 6 L * ?'],
  ])('%s', (cron, rhythm, written) => {
    expect(rhythmOf(cron)).toEqual(rhythm)
    expect(cronOf(rhythm)).toBe(written ?? cron)
    expect(rhythmOf(cronOf(rhythm) ?? '')).toEqual(rhythm)
  })

  it.each(['0 0 6 ? * MON#1', '0 0 6,18 * * ?', '5 0 6 * * ?', '0 0 6 1 1 ?', 'nonsense', '', '0 0 6 1 * 2', '0 0 6 ? * FRI-MON', '0 99 6 * * ?', '0 0 6 * * ? 2030'])('%j has no fields', (cron) => {
    expect(rhythmOf(cron)).toEqual({ kind: 'other' })
  })

  it('keeps the time of day when its kind changes', () => {
    expect(turned({ kind: 'days', hour: 3, minute: 20 }, 'weekdays')).toMatchObject({ hour: 3, minute: 20 })
    expect(cronOf(turned({ kind: 'other' }, 'months'))).toBe('0 0 6 1 * ?')
    expect(cronOf({ kind: 'other' })).toBeNull()
  })
})
