import { expect, it } from 'vitest'
import { outlookOf } from './outlook'

const at = (minute: number): string => new Date(Date.UTC(2026, 10, 21, 2, minute)).toISOString()
const ms = (minute: number): number => Date.parse(at(minute))
const run = { started_at: at(0), expected_end_at: at(14), late_after_at: at(16) }

it('says how much later than usual a run ends', () => expect(outlookOf(run, 8 * 60, ms(5))).toEqual({ endAt: at(14), laterS: 360, isSlow: false }))
it('moves with the clock once the end was to be', () => expect(outlookOf(run, 8 * 60, ms(15)).laterS).toBe(420))
it('says that a run takes longer than those before it', () => expect(outlookOf(run, 480, ms(17)).isSlow).toBe(true))
it('compares with nothing where nothing is known', () => {
  expect(outlookOf(run, null, ms(5))).toEqual({ endAt: at(14), laterS: null, isSlow: false })
  expect(outlookOf({ started_at: null, expected_end_at: null, late_after_at: null }, 480, ms(5))).toEqual({ endAt: null, laterS: null, isSlow: false })
})
