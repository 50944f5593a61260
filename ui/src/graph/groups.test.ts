import { describe, expect, it } from 'vitest'
import { collapsed, countsText, folded, freeGroupName, grouped, groupsFrom, groupsWith, joinedGroups, renamedGroup, storedFrom, ungrouped, worstFirst, type Groups } from './groups'
import { SIZES } from './layered'
import { arranged, frameAt, framesOf, placed, placesOfItems } from './places'

const task = (name: string, ...dependsOn: string[]) => ({ name, dependsOn })
const TASKS = [task('a'), task('b', 'a'), task('c', 'b'), task('d', 'c', 'a'), task('e', 'd', 'b')]
const GROUPS: Groups = { load: { tasks: ['b', 'c', 'gone'], isFolded: true }, rest: { tasks: ['e'], isFolded: false } }
const shown = (groups: Groups) => collapsed(TASKS, groups, (group, _own, dependsOn) => task(`group:${group}`, ...dependsOn))

describe('folded groups', () => {
  it('stand where their first task was, with the edges of all of them', () => {
    expect(shown(GROUPS)).toEqual([task('a'), task('group:load', 'a'), task('d', 'group:load', 'a'), task('e', 'd', 'group:load')])
  })

  it('change nothing while none is folded', () => {
    expect(shown(folded(GROUPS, ['load'], false))).toBe(TASKS)
  })

  it('say the worst of their states, and how many have which', () => {
    const counts = worstFirst(['SUCCEEDED', 'RUNNING', 'FAILED', 'SUCCEEDED', 'LOST'])
    expect(counts).toEqual([['FAILED', 1], ['LOST', 1], ['RUNNING', 1], ['SUCCEEDED', 2]])
    expect(countsText(counts)).toBe('✕ 1 · ⚡ 1 · ▶ 1')
    expect(worstFirst(['SUCCEEDED', 'SKIPPED', 'WAITING'])[0]).toEqual(['WAITING', 1])
  })
})

describe('groups', () => {
  it('take their tasks from those that had them, and one that is left empty goes', () => {
    expect(grouped(GROUPS, 'new', ['c', 'e'])).toEqual({ load: { tasks: ['b', 'gone'], isFolded: true }, new: { tasks: ['c', 'e'], isFolded: false } })
    expect(groupsWith(GROUPS, ['c'])).toEqual(['load'])
    expect([freeGroupName({}), freeGroupName({ group_1: { tasks: [], isFolded: false } })]).toEqual(['group_1', 'group_2'])
  })

  it('are named, dissolved, and stored as the API has them', () => {
    expect(Object.keys(renamedGroup(GROUPS, 'load', 'extract'))).toEqual(['extract', 'rest'])
    expect(Object.keys(ungrouped(GROUPS, ['load']))).toEqual(['rest'])
    expect(groupsFrom(storedFrom(GROUPS))).toEqual(GROUPS)
  })

  it('of two people are joined: what one has changed stays, what both have is of the one who comes later', () => {
    const mine = { ...GROUPS, rest: { tasks: ['d', 'e'], isFolded: false } }
    const theirs = { ...folded(GROUPS, ['load'], false), other: { tasks: ['d'], isFolded: false } }
    expect(joinedGroups(GROUPS, mine, theirs)).toEqual({ load: { tasks: ['b', 'c', 'gone'], isFolded: false }, rest: { tasks: ['d', 'e'], isFolded: false } })
    expect(joinedGroups(GROUPS, ungrouped(GROUPS, ['load']), theirs)).not.toHaveProperty('load')
  })
})

describe('places of groups', () => {
  it('are arranged as one, also where a path leaves a group and comes back', () => {
    const circle = [task('a'), task('b', 'a'), task('c', 'b'), task('d', 'c')]
    const groups = { outer: { tasks: ['a', 'c'], isFolded: false } }
    const places = arranged(circle, groups)
    const [frame] = framesOf(circle, groups, places)
    if (!frame) throw new Error('no frame')
    for (const name of ['a', 'c']) expect(isIn(places[name], frame)).toBe(true)
    for (const name of ['b', 'd']) expect(isIn(places[name], frame)).toBe(false)
    expect(new Set(Object.values(places).map(({ x, y }) => `${x}/${y}`)).size).toBe(4)
  })

  it('a folded group stands in the middle of its tasks, and below what stands there already', () => {
    const places = { a: { x: 0, y: 0 }, b: { x: 300, y: 0 }, c: { x: 300, y: 200 }, d: { x: 900, y: 0 }, e: { x: 300, y: 100 } }
    const items = shown(GROUPS)
    expect(placesOfItems(items, GROUPS, { ...places, e: { x: 900, y: 300 } })['group:load']).toEqual({ x: 300, y: 100 })
    expect(placesOfItems(items, GROUPS, places)['group:load']).toEqual({ x: 300, y: 100 + SIZES.height + SIZES.gapY })
  })

  it('leave no room between what is folded, and the tasks of it keep their places to each other', () => {
    const open = placed(TASKS, {}, folded(GROUPS, ['load'], false))
    const closed = placed(TASKS, {}, GROUPS)
    const width = (places: typeof open) => Math.max(...['a', 'd', 'e'].map((name) => places[name]?.x ?? 0))
    expect(width(closed)).toBeLessThan(width(open))
    const gap = (places: typeof open) => (places.c?.x ?? 0) - (places.b?.x ?? 0)
    expect(gap(closed)).toBe(gap(open))
  })

  it('have a head that is found by a point, and are framed while they are open and have tasks', () => {
    const frames = framesOf(TASKS, { ...GROUPS, none: { tasks: ['gone'], isFolded: false } }, placed(TASKS, {}, GROUPS))
    expect(frames.map((one) => one.name)).toEqual(['rest'])
    const [frame] = frames
    if (!frame) throw new Error('no frame')
    expect(frameAt(frames, { x: frame.x + 5, y: frame.y + 5 })).toBe(frame)
    expect(frameAt(frames, { x: frame.x + 5, y: frame.y + 60 })).toBeUndefined()
  })
})

function isIn(place: { x: number; y: number } | undefined, frame: { x: number; y: number; width: number; height: number }): boolean {
  return place !== undefined && place.x >= frame.x && place.x <= frame.x + frame.width && place.y >= frame.y && place.y <= frame.y + frame.height
}
