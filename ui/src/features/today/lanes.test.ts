import { describe, expect, it } from 'vitest'
import type { TodayLane, TodayRun } from '@/api/types'
import { laneOf, mattersOf, ticksOf } from './lanes'

const HOUR = 3_600_000
const T0 = Date.parse('2026-11-21T00:00:00Z')
const time = (hour: number): string => new Date(T0 + hour * HOUR).toISOString()
const run = (id: number, state: TodayRun['state'], start: number, end: number | null, more: Partial<TodayRun> = {}): TodayRun => ({
  id, state, version: 1, reason: null, reason_said: null, waits_for: null, is_resolved: false, logical_time: time(start),
  created_at: time(start), started_at: time(start), finished_at: end === null ? null : time(end), expected_end_at: null, late_after_at: null, ...more,
})
const lane = (workflow: string, more: Partial<TodayLane>): TodayLane => ({ project: 'p', workflow, rank: 'done', is_more: false, runs: [], late: [], next_fires: [], ...more })
const said = (text: string) => ({ code: 'fire.late' as const, arguments: {}, text })
const window = { from: T0, to: T0 + 10 * HOUR }

describe('laneOf', () => {
  it('cuts bars at the window and leaves out what is outside', () => {
    const { bars } = laneOf(lane('w', { runs: [run(1, 'SUCCEEDED', 1, 2), run(2, 'FAILED', -2, 5), run(3, 'SUCCEEDED', -5, -1)] }), window, T0 + 6 * HOUR)
    expect(bars.map((bar) => [bar.run.id, bar.from, bar.to])).toEqual([[1, 0.1, 0.2], [2, 0, 0.5]])
  })
  it('draws what still runs up to now', () => {
    expect(laneOf(lane('w', { runs: [run(1, 'RUNNING', 2, null)] }), window, T0 + 6 * HOUR).bars[0]?.to).toBeCloseTo(0.6)
  })
  it('shows fires to come, and those that have not come', () => {
    const { fires, late } = laneOf(lane('w', { next_fires: [{ at: time(8), schedule_id: 1 }, { at: time(11), schedule_id: 1 }], late: [{ since: time(5), schedule_id: 1, instance_id: null, said: said('late') }] }), window, T0)
    expect(fires).toEqual([{ at: time(8), place: 0.8 }])
    expect(late).toEqual([{ at: time(5), place: 0.5, said: said('late') }])
  })
})

describe('mattersOf', () => {
  const waits = { code: 'tasks.queued' as const, arguments: {}, text: 'no worker' }
  const lanes = [
    lane('a', { runs: [run(1, 'RUNNING', 1, null), run(2, 'SUCCEEDED', 0, 1)] }),
    lane('b', { runs: [run(3, 'RUNNING', 1, null, { waits_for: waits }), run(4, 'FAILED', 0, 1, { reason: 'load failed' }), run(6, 'FAILED', -1, 0, { is_resolved: true })] }),
    lane('c', { late: [{ since: time(5), schedule_id: 7, instance_id: null, said: said('should have fired') }] }),
    lane('d', { runs: [run(5, 'RUNNING', 1, null, { expected_end_at: time(6), late_after_at: time(4) })] }),
  ]
  it('has what is late first, then failures, then what takes longer than usual, then what waits, then what runs', () => {
    const found = mattersOf(lanes, T0 + 5 * HOUR)
    expect(found.map((one) => [one.workflow, one.run?.id, one.text, one.isSlow])).toEqual([
      ['c', undefined, 'should have fired', false], ['b', 4, 'load failed', false], ['d', 5, null, true], ['b', 3, 'no worker', false], ['a', 1, null, false],
    ])
    expect(new Set(found.map((one) => one.key)).size).toBe(5)
  })
  it('calls nothing slow before it is', () => expect(mattersOf(lanes, T0 + 3 * HOUR).filter((one) => one.isSlow)).toEqual([]))
})

describe('what is expected', () => {
  const open = (more: Partial<TodayRun>) => laneOf(lane('w', { runs: [run(1, 'RUNNING', 2, null, more)] }), window, T0 + 6 * HOUR).bars[0]
  it('is drawn from now to the end that is to be, and no further than the window', () => {
    expect(open({ expected_end_at: time(8), late_after_at: time(9) })).toMatchObject({ to: 0.6, until: 0.8, isSlow: false })
    expect(open({ expected_end_at: time(30), late_after_at: time(5) })).toMatchObject({ until: 1, isSlow: true })
  })
  it('is nothing where nothing is known, or where it should have ended', () => {
    expect(open({})?.until).toBeNull()
    expect(open({ expected_end_at: time(6) })?.until).toBeNull()
    expect(open({ expected_end_at: time(6 + 0.01) })?.until).toBeNull() // at any moment
  })
})

it('gives an axis some round times', () => {
  const ticks = ticksOf(window)
  expect(ticks.length).toBeGreaterThan(3)
  expect(ticks.every((at) => at >= window.from && at < window.to)).toBe(true)
})
