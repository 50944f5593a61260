import { expect, it } from 'vitest'
import { daysBehind, daysOf, dayText, minuteText, weekdayOf, weekdayText, windowOf } from './days'

const UNTIL = '2026-11-21'

it.each([
  [{}, { from: '2026-10-25', to: UNTIL, preset: 28 }],
  [{ days: 7 as const }, { from: '2026-11-15', to: UNTIL, preset: 7 }],
  [{ days: 90 as const }, { from: '2026-08-24', to: UNTIL, preset: 90 }],
  [{ from: '2026-11-01' }, { from: '2026-11-01', to: UNTIL, preset: null }],
  [{ to: '2026-10-28' }, { from: '2026-10-01', to: '2026-10-28', preset: null }],
  [{ days: 7 as const, from: '2026-11-01', to: '2026-11-02' }, { from: '2026-11-01', to: '2026-11-02', preset: null }],
  [{ from: '2026-11-09', to: '2026-11-02' }, { from: '2026-11-02', to: '2026-11-09', preset: null }],
  [{ from: '2026-12-01' }, { from: '2026-12-01', to: '2026-12-01', preset: null }],
  [{ from: '2020-01-01', to: UNTIL }, { from: '2026-08-22', to: UNTIL, preset: null }],
])('reads the window %o', (search, window) => expect(windowOf(search, UNTIL)).toEqual(window))

it('has every day of a window, over a change of clocks as well', () => {
  const days = daysOf('2026-03-01', '2026-04-01')
  expect(days).toHaveLength(32)
  expect([days[0], days[28], days.at(-1)]).toEqual(['2026-03-01', '2026-03-29', '2026-04-01'])
})

it('knows weekdays and ages', () => {
  expect([weekdayOf('2026-11-23'), weekdayOf('2026-11-22'), daysBehind('2026-11-21', '2026-11-26')]).toEqual([0, 6, 5])
  expect([weekdayText(0, 'en'), weekdayText(6, 'en', 'long'), dayText(UNTIL, 'en'), dayText(UNTIL, 'en', 'long')]).toEqual(['Mon', 'Sunday', '21 Nov', 'Sat, 21 Nov 2026'])
})

it.each([[120, '02:00'], [1439, '23:59'], [1441, '00:01'], [-2, '23:58']])('minute %s is %s', (minute, text) => expect(minuteText(minute)).toBe(text))
