import type { CompletionContext } from '@codemirror/autocomplete'
import { describe, expect, it } from 'vitest'
import { parse } from '@/definition/parse'
import { addTask, connect, rename } from '@/definition/tasks'
import { grouped as inGroup, withRenamed } from '@/graph/groups'
import { difference } from '@/shared/code/difference'
import { placeOf, values } from './completion'
import { problemAt, troublesOf } from './problems'
import { Session, type LayoutStore } from './session'
import { grouped, starterOf } from './types'

const TEXT = `name: x
parameters: {day: "1"}
tasks:
  - name: a
    type: SHELL
    params:
      script: echo
  - name: b
    type: SQL
    depends_on: [a]
`

describe('where the cursor is', () => {
  const lines = TEXT.split('\n')
  it.each([
    [0, 'na', { path: [], key: null, type: null }],
    [3, '  - na', { path: ['tasks'], key: null, type: null }],
    [4, '    type: ', { path: ['tasks'], key: 'type', type: null }],
    [6, '      scr', { path: ['tasks', 'params'], key: null, type: 'SHELL' }],
    [9, '    depends_on: [', { path: ['tasks'], key: 'depends_on', type: 'SQL' }],
  ] as const)('line %i', (line, before, place) => expect(placeOf(lines.slice(0, line), before)).toEqual(place))
})

it('offers parameters, secrets and dates behind a dollar', () => {
  const context = { matchBefore: () => ({ from: 0, to: 2, text: '${' }) } as unknown as CompletionContext
  const labels = values({ types: new Map(), parsed: parse(TEXT), parameters: ['bucket'], secrets: ['key'] }, context)?.options.map((one) => one.label)
  expect(labels).toEqual(expect.arrayContaining(['${day}', '${bucket}', '${secret.key}', '$[yyyy-MM-dd]']))
})

it('finds the place and the task of a problem', () => {
  const troubles = troublesOf([{ field: 'tasks[1].params.sql', message: 'is required', line: 9 }, { field: '', message: 'whole', line: null }], parse(TEXT))
  expect(troubles[0]).toEqual({ key: 'tasks.1.params.sql', message: 'is required', line: 9, task: 'b' })
  expect(problemAt(troubles, ['tasks', 1, 'params', 'sql'])).toBe('is required')
  expect(problemAt(troubles, ['tasks', 1])).toBeUndefined()
})

it('begins a task with what its type needs', () => {
  expect(starterOf('SHELL', { properties: { script: {} } })).toEqual({ script: 'echo "hello"\n' })
  expect(starterOf('CONTAINER', { required: ['engine', 'image'], properties: { engine: { enum: ['docker'] }, image: { type: 'string' } } })).toEqual({ engine: 'docker', image: '' })
  expect(grouped([{ name: 'SHELL', params_schema: {} }, { name: 'RUBY', params_schema: {} }]).map((group) => group.types)).toEqual([['SHELL'], ['RUBY']])
})

it('replaces no more of a text than differs', () => {
  expect(difference('abcd', 'abXd')).toEqual({ from: 2, to: 3, insert: 'X' })
  expect(difference('aa', 'aaa')).toEqual({ from: 2, to: 2, insert: 'a' })
  expect(difference('a', 'a')).toBeNull()
})

describe('a session', () => {
  const made = (refusal: string | null = null) => {
    const texts: string[] = []
    const kept: unknown[] = []
    const layout: LayoutStore = { arrangement: { places: {}, groups: {} }, save: (arrangement) => void kept.push(arrangement) }
    return { session: new Session('p', 'x', TEXT, refusal, layout, (text) => texts.push(text)), texts, kept }
  }

  it('undoes text and places as one history, whichever view made them', () => {
    const { session, texts } = made()
    session.change('edit.add', (parsed) => addTask(parsed, { name: 'c', type: 'SHELL' }))
    session.type(`${session.state.text}# typed\n`)
    session.place('edit.move', (shown) => ({ ...shown, a: { x: 7, y: 7 } }))
    expect([session.state.parsed.tasks.length, session.state.places.a]).toEqual([3, { x: 7, y: 7 }])
    session.undo()
    expect(session.state.places.a).not.toEqual({ x: 7, y: 7 })
    expect(session.state.canUndo).toBe('edit.typing')
    session.undo()
    session.undo()
    expect([session.state.text, session.state.canUndo, session.state.canRedo]).toEqual([TEXT, null, 'edit.add'])
    session.redo()
    expect(session.state.parsed.tasks.length).toBe(3)
    expect(texts.at(-1)).toBe(session.state.text)
  })

  it('stands where others have moved tasks, and cannot undo that', () => {
    const { session, kept } = made()
    session.place('edit.move', (shown) => ({ ...shown, a: { x: 7, y: 7 } }))
    session.takeLayout({ places: { ...session.state.places, b: { x: 9, y: 9 } }, groups: {} })
    expect([session.state.places.a, session.state.places.b, session.state.canUndo]).toEqual([{ x: 7, y: 7 }, { x: 9, y: 9 }, 'edit.move'])
    expect(kept).toHaveLength(1)
  })

  it('keeps groups when tasks are renamed, and undoes them like the rest', () => {
    const { session, kept } = made()
    session.group('edit.group', (groups) => inGroup(groups, 'g', ['a', 'b']))
    session.change('edit.rename', (parsed) => rename(parsed, 'a', 'z'), { groups: (groups) => withRenamed(groups, new Map([['a', 'z']])) })
    expect(session.state.groups).toEqual({ g: { tasks: ['z', 'b'], isFolded: false } })
    session.undo()
    session.undo()
    expect([session.state.groups, session.state.canRedo]).toEqual([{}, 'edit.group'])
    session.redo()
    expect(kept.at(-1)).toMatchObject({ groups: { g: { tasks: ['a', 'b'], isFolded: false } } })
  })

  it('keeps the last text that could be read, and refuses changes by hand meanwhile', () => {
    const { session } = made()
    session.type(`${TEXT}  - {`)
    expect([session.state.parsed.mistakes.length > 0, session.state.good.tasks.length]).toEqual([true, 2])
    expect(session.change('edit.connect', (parsed) => connect(parsed, 'a', 'b'))).toBe(false)
    session.type(TEXT)
    expect(session.change('edit.rename', (parsed) => rename(parsed, 'a', 'z'))).toBe(true)
    expect(session.state.good.tasks[1]?.dependsOn).toEqual(['z'])
  })

  it('changes nothing for those who may only read', () => {
    const { session, texts } = made('reader')
    session.type('')
    session.arrange()
    session.group('edit.group', (groups) => inGroup(groups, 'g', ['a']))
    session.undo()
    expect(session.change('edit.add', (parsed) => addTask(parsed, { name: 'c', type: 'SHELL' }))).toBe(false)
    expect([session.state.text, texts]).toEqual([TEXT, []])
  })
})
