import { describe, expect, it } from 'vitest'
import type { Instance, Schedule } from '@/api/types'
import { lanesOf, ticksOf } from './lanes'

const HOUR = 3_600_000
const T0 = Date.parse('2026-11-21T00:00:00Z')
const run = (id: number, workflow: string, state: Instance['state'], start: number, end: number | null): Instance =>
  ({
    id, project: 'p', workflow, state,
    created_at: new Date(T0 + start * HOUR).toISOString(),
    started_at: new Date(T0 + start * HOUR).toISOString(),
    finished_at: end === null ? null : new Date(T0 + end * HOUR).toISOString(),
  }) as Instance
const window = { from: T0, to: T0 + 10 * HOUR }

describe('lanesOf', () => {
  it('cuts bars at the window, leaves out what is outside, and puts failures first', () => {
    const lanes = lanesOf(
      [run(1, 'ok', 'SUCCEEDED', 1, 2), run(2, 'bad', 'FAILED', -2, 5), run(3, 'old', 'SUCCEEDED', -5, -1)],
      [], window, T0 + 6 * HOUR,
    )
    expect(lanes.map((lane) => lane.workflow)).toEqual(['bad', 'ok'])
    expect(lanes[0]?.bars[0]).toMatchObject({ from: 0, to: 0.5 })
  })
  it('draws what still runs up to now', () => {
    const [lane] = lanesOf([run(1, 'w', 'RUNNING', 2, null)], [], window, T0 + 6 * HOUR)
    expect(lane?.bars[0]?.to).toBeCloseTo(0.6)
  })
  it('shows fire times of enabled schedules alone', () => {
    const at = new Date(T0 + 8 * HOUR).toISOString()
    const plan = (workflow: string, enabled: boolean) => ({ project: 'p', workflow, enabled, next_fire_times: [at] }) as unknown as Schedule
    const lanes = lanesOf([], [plan('on', true), plan('off', false)], window, T0)
    expect(lanes.map((lane) => [lane.workflow, lane.fires[0]?.place])).toEqual([['on', 0.8]])
  })
})

it('gives an axis some round times', () => {
  const ticks = ticksOf(window)
  expect(ticks.length).toBeGreaterThan(3)
  expect(ticks.every((at) => at >= window.from && at < window.to)).toBe(true)
})
