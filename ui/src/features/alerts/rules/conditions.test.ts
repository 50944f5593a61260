import { expect, it } from 'vitest'
import { conditionBodies, conditionsOf, freshConditions } from './conditions'

const none = { deadline: null, no_success_for: null, success_rate: null }

it('sends only what the triggers use', () => {
  const fresh = freshConditions('UTC')
  expect(conditionBodies(['run.failed'], fresh)).toEqual(none)
  expect(conditionBodies(['workflow.no-success'], fresh)).toEqual({ ...none, no_success_for: '26h' })
  expect(conditionBodies(['workflow.low-success-rate'], fresh)).toEqual({ ...none, success_rate: { below: 0.9, runs: 20 } })
})

it('has a deadline that is fixed, or the usual one', () => {
  const days = ['MON' as const]
  const fixed = conditionsOf({ ...none, deadline: { at: '06:00', percentile: null, runs: 30, margin: 0, days, timezone: 'Europe/Berlin' } }, 'UTC')
  expect(fixed.deadline).toMatchObject({ mode: 'fixed', at: '06:00' })
  expect(conditionBodies(['workflow.not-started'], fixed).deadline).toEqual({ at: '06:00', days, timezone: 'Europe/Berlin' })
  const usual = conditionsOf({ ...none, deadline: { at: null, percentile: 90, runs: 10, margin: 900, days, timezone: 'UTC' } }, 'UTC')
  expect(usual.deadline).toMatchObject({ mode: 'usual', percentile: 90, margin: '15m' })
  expect(conditionBodies(['workflow.not-finished'], usual).deadline).toEqual({ percentile: 90, runs: 10, margin: '15m', days, timezone: 'UTC' })
})

it('shows shares as percents', () => {
  const { success_rate, no_success_for } = conditionsOf({ ...none, success_rate: { below: 0.57, runs: 7 }, no_success_for: 93_600 }, 'UTC')
  expect([success_rate, no_success_for]).toEqual([{ percent: 57, runs: 7 }, '26h'])
})
