import { expect, it } from 'vitest'
import { outlookOf } from './outlook'

const at = (minute: number): string => new Date(Date.UTC(2026, 10, 21, 2, minute)).toISOString()
const ms = (minute: number): number => Date.parse(at(minute))
const run = { started_at: at(0), expected_end_at: at(14), late_after_at: at(16) }
const usual = { p50_s: 480, mad_s: 20 }

it('says how much later than usual a run ends', () => expect(outlookOf(run, usual, ms(5))).toEqual({ endAt: at(14), laterS: 360, isUsual: false, isSlow: false }))
it('moves with the clock once the end was to be', () => expect(outlookOf(run, usual, ms(15)).laterS).toBe(420))
it('calls usual what runs differ by anyway', () => {
  expect(outlookOf({ ...run, expected_end_at: at(9) }, usual, ms(5))).toMatchObject({ laterS: 60, isUsual: true })
  expect(outlookOf({ ...run, expected_end_at: at(7) }, { p50_s: 540, mad_s: 30 }, ms(5))).toMatchObject({ laterS: -120, isUsual: false })
})
it('says that a run takes longer than those before it', () => expect(outlookOf(run, usual, ms(17)).isSlow).toBe(true))
it('compares with nothing where nothing is known', () => {
  expect(outlookOf(run, null, ms(5))).toEqual({ endAt: at(14), laterS: null, isUsual: false, isSlow: false })
  expect(outlookOf({ started_at: null, expected_end_at: null, late_after_at: null }, usual, ms(5))).toEqual({ endAt: null, laterS: null, isUsual: false, isSlow: false })
})
