import { describe, expect, it } from 'vitest'
import { begun, changed, redone, undone } from './history'
import { arranged, freePlace, placed } from '@/graph/places'
import { merge, takeTheirs } from './merge'
import { parse } from './parse'

const BASE = 'name: x\ntimezone: UTC\ntasks:\n  # first\n  - {name: a, type: SHELL, params: {script: one}}\n  - name: b\n    type: SHELL\n    depends_on: [a]\n    retries: 1\n    params: {script: two}\n'

describe('merge', () => {
  it('takes nothing where the others have changed nothing, and all where we have not', () => {
    expect(merge(BASE, `${BASE}# mine\n`, BASE)).toEqual({ text: `${BASE}# mine\n`, taken: [], conflicts: [] })
    expect(merge(BASE, BASE, `${BASE}# theirs\n`)?.text).toBe(`${BASE}# theirs\n`)
  })

  it('joins changes of different tasks and fields, and keeps our comments', () => {
    const mine = BASE.replace('script: one', 'script: mine').replace('# first', '# my first')
    const theirs = BASE.replace('retries: 1', 'retries: 5').replace('timezone: UTC', 'timezone: Europe/Berlin') + '  - {name: c, type: SHELL, depends_on: [b]} # new\n'
    const done = merge(BASE, mine, theirs)
    expect(done?.conflicts).toEqual([])
    expect(done?.text).toBe(mine.replace('retries: 1', 'retries: 5').replace('timezone: UTC', 'timezone: Europe/Berlin') + '  - {name: c, type: SHELL, depends_on: [b]}\n')
    expect(done?.taken).toEqual(['b.retries', 'c', 'timezone'])
  })

  it('keeps ours where both have changed the same, and tells', () => {
    const mine = BASE.replace('script: two', 'script: mine').replace('retries: 1', 'retries: 2')
    const theirs = BASE.replace('script: two', 'script: theirs').replace('retries: 1', 'retries: 2')
    const done = merge(BASE, mine, theirs)
    expect(done?.text).toBe(mine)
    expect(done?.conflicts).toEqual([{ task: 'b', field: 'params.script', base: 'two', mine: 'mine', theirs: 'theirs' }])
    expect(takeTheirs(mine, theirs, done!.conflicts[0]!)).toBe(theirs)
  })

  it('does not remove what we have changed, nor bring back what we have removed', () => {
    const without = parse(BASE).text.replace(/ {2}- name: b[^]*$/, '')
    const mine = BASE.replace('retries: 1', 'retries: 9')
    expect(merge(BASE, mine, without)).toMatchObject({ text: mine, conflicts: [{ task: 'b', field: '', theirs: undefined }] })
    const back = merge(BASE, without, mine)
    expect(back).toMatchObject({ text: without, conflicts: [{ task: 'b', field: '', mine: undefined }] })
    expect(parse(takeTheirs(without, mine, back!.conflicts[0]!)).value).toEqual(parse(mine).value)
    expect(parse(takeTheirs(mine, without, { task: 'b', field: '', base: {}, mine: {}, theirs: undefined })).tasks.map((task) => task.name)).toEqual(['a'])
  })

  it('removes with the others what we have left alone', () => {
    const without = BASE.replace(/ {2}- name: b[^]*$/, '')
    expect(merge(BASE, BASE.replace('one', 'mine'), without)?.text).toBe(without.replace('one', 'mine'))
  })

  it('joins edges one by one', () => {
    const base = 'tasks:\n  - {name: a}\n  - {name: b}\n  - {name: c}\n  - {name: d, depends_on: [a, b]}\n'
    const done = merge(base, base.replace('[a, b]', '[a, b, c]'), base.replace('[a, b]', '[b]'))
    expect(done).toMatchObject({ conflicts: [], taken: ['d.depends_on'] })
    expect(parse(done!.text).tasks[3]?.dependsOn).toEqual(['b', 'c'])
  })

  it('says when a text cannot be read', () => expect(merge(BASE, `${BASE}}`, `${BASE}\n# t`)).toBeNull())
})

describe('history', () => {
  it('goes back and forth over text and places as one', () => {
    let history = begun('a', { places: {}, groups: {} })
    history = changed(history, { text: 'b', what: 'text' }, 1000)
    history = changed(history, { places: { a: { x: 1, y: 2 } }, what: 'move' }, 1001)
    expect(undone(history).now).toMatchObject({ text: 'b', places: {} })
    expect(undone(undone(history)).now.text).toBe('a')
    expect(redone(redone(undone(undone(history)))).now).toEqual(history.now)
    expect(undone(begun('a', { places: {}, groups: {} })).now.text).toBe('a')
  })

  it('takes strokes of one word as one step, and others not', () => {
    let history = begun('', { places: {}, groups: {} })
    for (const [at, text] of ['a', 'ab', 'abc'].entries()) history = changed(history, { text, what: 'typing' }, 1000 + 100 * at, 'typing')
    history = changed(history, { text: 'abcd', what: 'typing' }, 9000, 'typing')
    expect(undone(history).now.text).toBe('abc')
    expect(undone(undone(history)).now.text).toBe('')
    expect(changed(history, { text: 'abcd', what: 'typing' }, 9001)).toBe(history)
  })
})

describe('places', () => {
  const tasks = [{ name: 'a', dependsOn: [] }, { name: 'b', dependsOn: ['a'] }, { name: 'c', dependsOn: ['a'] }]
  it('arranges what nobody has placed, and leaves what somebody has', () => {
    expect(placed(tasks, {})).toEqual(arranged(tasks))
    const own = { a: { x: 5, y: 5 }, b: { x: 500, y: 0 } }
    const found = placed(tasks, own)
    expect(found).toMatchObject(own)
    expect(found.c?.x).toBeGreaterThan(5)
  })

  it('puts nothing upon something', () => {
    const found = placed(tasks, { a: { x: 0, y: 0 } })
    expect(Math.abs((found.b?.y ?? 0) - (found.c?.y ?? 0))).toBeGreaterThanOrEqual(48)
    expect(freePlace({ a: { x: 0, y: 0 } }, { x: 10, y: 10 }).y).toBeGreaterThanOrEqual(52)
  })
})
