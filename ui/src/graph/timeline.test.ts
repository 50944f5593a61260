import { describe, expect, it } from 'vitest'
import { axisOf, criticalPath, type Span } from './timeline'

const span = (name: string, start: number | null, end: number | null, ...dependsOn: string[]): Span => ({
  name,
  dependsOn,
  start,
  end,
})

describe('criticalPath', () => {
  it('follows what each task has waited for last', () => {
    const spans = [
      span('fast', 0, 10),
      span('slow', 0, 50),
      span('join', 50, 60, 'fast', 'slow'),
      span('aside', 10, 55, 'fast'),
    ]
    expect(criticalPath(spans, 60)).toEqual(['slow', 'join'])
  })
  it('counts what still runs as ending now', () => {
    expect(criticalPath([span('a', 0, 10), span('b', 10, null, 'a')], 99)).toEqual(['a', 'b'])
  })
  it('is empty before anything has started', () => {
    expect(criticalPath([span('a', null, null)], 0)).toEqual([])
  })
})

describe('axisOf', () => {
  it('draws long idle times short, and says how long they were', () => {
    const hour = 3_600_000
    const axis = axisOf([span('a', 0, 60_000), span('b', 2 * hour, 2 * hour + 60_000)], 0)
    expect(axis.gaps).toHaveLength(1)
    expect(axis.gaps[0]?.lasted).toBe(2 * hour - 60_000)
    expect(axis.length).toBeLessThan(130_000)
    expect(axis.at(2 * hour + 60_000)).toBeCloseTo(axis.length)
  })
  it('keeps the order of times', () => {
    const axis = axisOf([span('a', 0, 10), span('b', 500_000, 500_010), span('c', 5, 20)], 0)
    const places = [0, 5, 10, 20, 250_000, 500_000, 500_010].map(axis.at)
    expect(places).toEqual([...places].sort((a, b) => a - b))
  })
  it('has a length when nothing took any time', () => {
    expect(axisOf([span('a', 5, 5)], 5).length).toBeGreaterThan(0)
    expect(axisOf([], 0).length).toBeGreaterThan(0)
  })
})
