import { describe, expect, it } from 'vitest'
import type { Day, Grid, GridRun } from '@/api/types'
import { dayAfter, kindOf, neighbour, yearOf } from './calendar'
import { cellAt, lastingMs, pictureOf, withState } from './grid'

const run = (id: number, cells: string, version = 1): GridRun => ({
  id, cells, version, run_number: 1, backfill_id: null, state: 'SUCCEEDED',
  created_at: '2026-11-21T06:00:00Z', logical_time: '2026-11-21T06:00:00Z', started_at: '2026-11-21T06:00:00Z', finished_at: '2026-11-21T06:01:00Z',
})
const page = (names: string[], runs: GridRun[]): Grid => ({
  project: 'p', workflow: 'w', next: null, runs,
  tasks: names.map((name) => ({ name, type: 'SHELL', is_current: name !== 'old' })),
  legend: [{ cell: 'S', means: 'SUCCEEDED', state: 'SUCCEEDED' }, { cell: 'F', means: 'FAILED', state: 'FAILED' }, { cell: '.', means: 'no attempt', state: null }],
})

describe('the grid', () => {
  it('knows the cell at a point, however far it is scrolled', () => {
    const sheet = { cell: 24, head: 72, wide: 220 }
    const size = { rows: 100, columns: 3 }
    expect(cellAt({ x: 221, y: 1 }, { x: 0, y: 0 }, sheet, size)).toEqual({ row: 0, column: 0 })
    expect(cellAt({ x: 221, y: 1 }, { x: 24, y: 47 }, sheet, size)).toEqual({ row: 2, column: 1 })
    expect(cellAt({ x: 10, y: 50 }, { x: 48, y: 0 }, sheet, size)).toEqual({ row: 2, column: -1 })
    expect([cellAt({ x: 221 + 72, y: 1 }, { x: 0, y: 0 }, sheet, size), cellAt({ x: 221, y: 0 }, { x: 0, y: 2400 }, sheet, size)]).toEqual([null, null])
  })

  it('puts pages with different tasks together, the oldest run first', () => {
    const { tasks, columns } = pictureOf([page(['a', 'b'], [run(4, 'SF', 2), run(3, 'S.', 2)]), page(['a', 'b', 'old'], [run(2, 'S.F', 1)])])
    expect(tasks).toEqual([{ name: 'a', isCurrent: true }, { name: 'b', isCurrent: true }, { name: 'old', isCurrent: false }])
    expect(columns.map((column) => [column.run.id, [...column.states], column.isNewVersion])).toEqual([
      [2, [['a', 'SUCCEEDED'], ['old', 'FAILED']], false],
      [3, [['a', 'SUCCEEDED']], true],
      [4, [['a', 'SUCCEEDED'], ['b', 'FAILED']], false],
    ])
  })
  it('takes new states of its runs, and no others', () => {
    const one = page(['a', 'b'], [run(4, 'S.')])
    expect(withState(one, { instance: 4, task: 'b', state: 'FAILED' }).runs[0]?.cells).toBe('SF')
    expect(withState(one, { instance: 5, task: 'b', state: 'FAILED' })).toBe(one)
    expect(withState(one, { instance: 4, task: 'c', state: 'FAILED' })).toBe(one)
    expect(withState(one, { instance: 4, task: 'b', state: 'NEW' })).toBe(one)
  })
  it('counts from the start', () => {
    expect(lastingMs(run(1, ''), 0)).toBe(60_000)
    expect(lastingMs({ ...run(1, ''), finished_at: null }, Date.parse('2026-11-21T06:00:07Z'))).toBe(7000)
    expect(lastingMs({ ...run(1, ''), started_at: null }, 0)).toBeNull()
  })
})

const day = (date: string, states: Day['states'], missing = 0): Day => ({ date, states, missing, is_more: false })

describe('the calendar', () => {
  it('says what a day needs', () => {
    expect(kindOf(undefined)).toBe('none')
    expect(kindOf(day('2026-01-01', {}))).toBe('none')
    expect(kindOf(day('2026-01-01', { SUCCEEDED: 3 }))).toBe('good')
    expect(kindOf(day('2026-01-01', { SUCCEEDED: 3, FAILED: 1 }, 2))).toBe('bad')
    expect(kindOf(day('2026-01-01', { RUNNING: 1 }, 2))).toBe('missing')
    expect(kindOf(day('2026-01-01', { SUCCEEDED: 1, PAUSED: 1 }))).toBe('open')
  })
  it('has all days of a year in weeks that begin on Monday', () => {
    const cells = yearOf(2024, [day('2024-02-29', { SUCCEEDED: 2 })])
    expect(cells.length).toBe(366)
    expect(cells[0]).toMatchObject({ date: '2024-01-01', week: 0, weekday: 0 })
    expect(cells.find((cell) => cell.date === '2024-02-29')).toMatchObject({ weekday: 3, week: 8, kind: 'good', count: 2 })
    expect(yearOf(2023, [])[0]).toMatchObject({ weekday: 6, week: 0 })
    expect(yearOf(2023, [])[1]).toMatchObject({ weekday: 0, week: 1 })
  })
  it('is walked through by arrows, within the year', () => {
    const cells = yearOf(2026, [])
    expect([neighbour(cells, 10, 'ArrowUp'), neighbour(cells, 10, 'ArrowRight'), neighbour(cells, 3, 'ArrowLeft'), neighbour(cells, 364, 'ArrowDown'), neighbour(cells, 10, 'End'), neighbour(cells, 10, 'x')]).toEqual([9, 17, 3, 364, 364, 10])
  })
  it('knows the day after', () => {
    expect(dayAfter('2024-02-28')).toBe('2024-02-29')
    expect(dayAfter('2026-12-31')).toBe('2027-01-01')
  })
})
