import { describe, expect, it } from 'vitest'
import { layered, SIZES, type GraphTask } from './layered'
import { downstream, upstream } from './reach'

/** A small generator of its own, so that a failing case can be made again from its seed. */
function randomGraph(seed: number, count: number): GraphTask[] {
  let state = seed
  const random = (): number => {
    state = (state * 1664525 + 1013904223) % 4294967296
    return state / 4294967296
  }
  return Array.from({ length: count }, (_, index) => ({
    name: `t${index}`,
    dependsOn: Array.from({ length: Math.floor(random() * 3) }, () => Math.floor(random() * index))
      .filter((other) => other < index)
      .map((other) => `t${other}`),
  }))
}

describe('layered', () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed))('keeps what must hold, seed %i', (seed) => {
    const tasks = randomGraph(seed, 60)
    const placed = new Map(layered(tasks).map((node) => [node.name, node]))
    for (const task of tasks) {
      for (const other of task.dependsOn) {
        expect(placed.get(task.name)?.layer).toBeGreaterThan(placed.get(other)?.layer ?? Infinity)
      }
    }
    const nodes = [...placed.values()]
    for (const one of nodes) {
      for (const other of nodes) {
        if (one === other || one.x !== other.x) continue
        expect(Math.abs(one.y - other.y)).toBeGreaterThanOrEqual(SIZES.height)
      }
    }
    expect(layered(tasks)).toEqual([...placed.values()])
  })

  it('draws a chain as a straight line', () => {
    const tasks = [0, 1, 2, 3].map((n) => ({ name: `t${n}`, dependsOn: n ? [`t${n - 1}`] : [] }))
    expect(new Set(layered(tasks).map((node) => node.y)).size).toBe(1)
  })

  it('does not cross the edges of two chains', () => {
    const tasks = [
      { name: 'a', dependsOn: [] },
      { name: 'b', dependsOn: [] },
      { name: 'b2', dependsOn: ['b'] },
      { name: 'a2', dependsOn: ['a'] },
    ]
    const y = new Map(layered(tasks).map((node) => [node.name, node.y]))
    expect(y.get('a2')).toBe(y.get('a'))
    expect(y.get('b2')).toBe(y.get('b'))
  })

  it('draws trees side by side, without a crossing', () => {
    const tasks = ['eu', 'us', 'asia'].flatMap((region) =>
      Array.from({ length: 14 }, (_, n) => ({
        name: `${region}.${n}`,
        dependsOn: n ? [`${region}.${n >> 1}`] : [],
      })),
    )
    tasks.push({ name: 'join', dependsOn: ['eu.13', 'us.13', 'asia.13'] })
    const placed = new Map(layered(tasks).map((node) => [node.name, node]))
    const edges = tasks.flatMap((task) => task.dependsOn.map((from) => [placed.get(from), placed.get(task.name)] as const))
    let crossings = 0
    for (const [from, to] of edges) {
      for (const [otherFrom, otherTo] of edges) {
        if (!from || !to || !otherFrom || !otherTo || from.layer !== otherFrom.layer) continue
        if (from.y < otherFrom.y && to.y > otherTo.y) crossings += 1
      }
    }
    expect(crossings).toBe(0)
  })

  it('places 1,000 tasks without much work', () => {
    expect(layered(randomGraph(7, 1000))).toHaveLength(1000)
  })

  it('survives names that are not there, and cycles', () => {
    const tasks = [
      { name: 'a', dependsOn: ['gone', 'b'] },
      { name: 'b', dependsOn: ['a'] },
    ]
    expect(layered(tasks)).toHaveLength(2)
    expect(layered([])).toEqual([])
  })
})

describe('reach', () => {
  const tasks = [
    { name: 'a', dependsOn: [] },
    { name: 'b', dependsOn: ['a'] },
    { name: 'c', dependsOn: ['b'] },
    { name: 'd', dependsOn: ['a'] },
  ]
  it('goes both ways', () => {
    expect([...downstream(tasks, ['b'])]).toEqual(['b', 'c'])
    expect([...upstream(tasks, ['c'])]).toEqual(['c', 'b', 'a'])
  })
})
