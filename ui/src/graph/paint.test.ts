import { describe, expect, it } from 'vitest'
import { boxAt, fitting, seen, within, type Box } from './paint'

const SIZE = { width: 200, height: 50 }
const PAGE = { width: 1000, height: 500 }
const box = (name: string, x: number, y: number): Box => ({ name, label: name, place: { x, y }, tone: 'plain', glyph: '', isCritical: false, isGroup: false })

describe('many tasks', () => {
  it('are counted where they are seen, also in part', () => {
    const places = [{ x: -199, y: 0 }, { x: -201, y: 0 }, { x: 999, y: 499 }, { x: 1001, y: 0 }]
    expect(seen(places, SIZE, { x: 0, y: 0, zoom: 1 }, PAGE)).toBe(2)
    expect(seen(places, SIZE, { x: 300, y: 0, zoom: 0.5 }, PAGE)).toBe(4)
    expect(seen(places, SIZE, { x: 0, y: -5000, zoom: 1 }, PAGE)).toBe(0)
  })

  it('fit into the page, no larger than they are', () => {
    const places = [{ x: 0, y: 0 }, { x: 9800, y: 450 }]
    const view = fitting(places, SIZE, PAGE, 0.03)
    expect(seen(places, SIZE, view, PAGE)).toBe(2)
    expect(view.zoom).toBeCloseTo(0.088)
    expect((0 * view.zoom + view.x + (10_000 * view.zoom + view.x)) / 2).toBeCloseTo(500)
    expect(fitting([{ x: 5, y: 5 }], SIZE, PAGE, 0.03).zoom).toBe(1)
    expect(fitting([{ x: 0, y: 0 }, { x: 1e7, y: 0 }], SIZE, PAGE, 0.03).zoom).toBe(0.03)
    expect(fitting([], SIZE, PAGE, 0.03)).toEqual({ x: 0, y: 0, zoom: 1 })
  })

  it('are found by the point that is clicked', () => {
    const boxes = [box('a', 0, 0), box('b', 300, 100)]
    expect([boxAt(boxes, SIZE, { x: 200, y: 50 })?.name, boxAt(boxes, SIZE, { x: 310, y: 120 })?.name, boxAt(boxes, SIZE, { x: 250, y: 10 })]).toEqual(['a', 'b', undefined])
  })

  it('are found by a rectangle that touches them, whichever corner it began at', () => {
    const boxes = [box('a', 0, 0), box('b', 300, 100), box('c', 900, 900)]
    expect(within(boxes, SIZE, { x: 350, y: 120 }, { x: 190, y: 40 }).map((one) => one.name)).toEqual(['a', 'b'])
    expect(within(boxes, SIZE, { x: 210, y: 0 }, { x: 290, y: 99 })).toEqual([])
  })
})
