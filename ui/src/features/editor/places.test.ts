import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiProblem, type Tagged } from '@/api/client'
import type { Layout } from '@/api/types'
import { KeptPlaces, type Remote } from './places'

type Body = Parameters<Remote['save']>[0]

const G = { g: { tasks: ['a'], isFolded: true } }
const AT = { a: { x: 1, y: 1 }, b: { x: 2, y: 2 } }
const layout = (places: Layout['places'], etag = '"1"'): Tagged<Layout> => ({ value: { places, groups: { g: ['a'] }, folded: ['g'], updated_at: null, updated_by: null }, etag })

/** An API with one layout, which refuses what was not seen. */
function remote(stored: Tagged<Layout> | null) {
  const made = {
    stored,
    sent: [] as Body[],
    problem: null as ApiProblem | null,
    load: () => Promise.resolve(made.stored),
    save: (body: Body, tag: string) => {
      made.sent.push(body)
      if (made.problem) return Promise.reject(made.problem)
      if (tag !== made.stored?.etag) return Promise.reject(new ApiProblem(412, { current: made.stored?.value }, made.stored?.etag ?? null))
      made.stored = { value: { ...made.stored.value, ...body }, etag: `"${made.sent.length + 1}"` }
      return Promise.resolve(made.stored)
    },
  }
  return made
}

beforeEach(() => {
  const kept = new Map<string, string>()
  vi.stubGlobal('localStorage', { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => kept.set(key, value), removeItem: (key: string) => kept.delete(key) })
})

describe('places', () => {
  it('are stored in the layout, which keeps the rest of it', async () => {
    const api = remote(layout(AT))
    const places = new KeptPlaces('k', api, api.stored, true)
    expect(places.arrangement).toEqual({ places: AT, groups: G })
    places.save({ places: { a: { x: 5, y: 5 } }, groups: G })
    expect(localStorage.getItem('k')).toBe('{"places":{"a":{"x":5,"y":5}},"groups":{}}')
    await places.flush()
    expect(api.sent).toEqual([{ places: { ...AT, a: { x: 5, y: 5 } }, groups: { g: ['a'] }, folded: ['g'] }])
    expect(localStorage.getItem('k')).toBeNull()
    await places.flush()
    expect(api.sent).toHaveLength(1)
  })

  it('are joined with those of others, task by task', async () => {
    const api = remote(layout(AT))
    const places = new KeptPlaces('k', api, api.stored, true)
    const told: unknown[] = []
    places.onOthers = (moved) => told.push(moved)
    api.stored = layout({ a: { x: 8, y: 8 }, b: { x: 9, y: 9 } }, '"other"')
    places.save({ places: { ...AT, a: { x: 5, y: 5 } }, groups: G })
    await places.flush()
    expect(told).toEqual([{ places: { a: { x: 5, y: 5 }, b: { x: 9, y: 9 } }, groups: G }])
    await places.flush()
    expect(api.stored.value.places).toEqual({ a: { x: 5, y: 5 }, b: { x: 9, y: 9 } })
  })

  it('are joined group by group, and no task is in two', async () => {
    const api = remote(layout(AT))
    const kept = new KeptPlaces('k', api, api.stored, true)
    api.stored = { value: { ...layout(AT).value, groups: { g: ['a'], theirs: ['b', 'c'] }, folded: ['theirs'] }, etag: '"other"' }
    kept.save({ places: AT, groups: { mine: { tasks: ['a', 'b'], isFolded: true } } })
    await kept.flush()
    await kept.flush()
    expect([api.stored.value.groups, api.stored.value.folded]).toEqual([{ theirs: ['c'], mine: ['a', 'b'] }, ['theirs', 'mine']])
  })

  it('wait in this browser for a network, and for the workflow to be published', async () => {
    const api = remote(null)
    const first = new KeptPlaces('k', api, null, true)
    first.save({ places: AT, groups: { new: { tasks: ['b'], isFolded: false } } })
    await first.flush()
    expect(api.sent).toEqual([])
    api.stored = layout({})
    api.problem = new ApiProblem(0, {})
    await first.published()
    api.problem = null
    const again = new KeptPlaces('k', api, api.stored, true)
    expect(again.arrangement.places).toEqual(AT)
    await again.flush()
    expect([api.stored.value.places, api.stored.value.groups, localStorage.getItem('k')]).toEqual([AT, { g: ['a'], new: ['b'] }, null])
  })

  it('of those who may only read are what the API has', () => {
    localStorage.setItem('k', '{"places":{"a":{"x":5,"y":5}},"groups":{"g":null}}')
    const api = remote(layout(AT))
    expect(new KeptPlaces('k', api, api.stored, false).arrangement).toEqual({ places: AT, groups: G })
  })
})
