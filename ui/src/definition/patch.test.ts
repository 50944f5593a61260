import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse, valueAt, type Parsed, type Path, type Plain } from './parse'
import { insert, move, NotPatchable, same, set, unset } from './patch'
import { addTask, connect, copied, disconnect, moveTask, paste, removeTasks, rename, setField } from './tasks'

const EXAMPLES = join(import.meta.dirname, '../../../examples')
const OWN = `# The night's work.
name: nightly   # keep this
parameters:
  day: $[yyyy-MM-dd-1]
  full: {default: "false", type: boolean}

tasks:
  # waits for others
  - name: orders
    type: DEPENDENT
    params:
      when: {workflow: import_orders, date: today}

  - name: load            # the slow one
    type: SHELL
    depends_on: orders
    retries: 3
    params:
      script: |
        ./load.sh "$day"

        echo done   # not a comment
    # after the script
  - name: how
    type: SWITCH
    depends_on: [load]    # one
    params:
      cases:
        - {when: "number(rows) == 0", then: nothing}
        - {when: 'full == "true"', then: [append]}
      default: append
  - {name: nothing, type: SHELL, depends_on: how, params: {script: "echo, nothing"}}
  - name: append
    type: PYTHON
    depends_on:
      - how   # the branch
      - load
    params: {script: 'print("x")'}
# the end
`
const texts: [string, string][] = [['own', OWN], ...found(EXAMPLES).map((file): [string, string] => [file.slice(EXAMPLES.length + 1), readFileSync(file, 'utf8')])]

function found(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? found(path) : /\.ya?ml$/.test(entry.name) ? [path] : []
  })
}

/** The lines between the first and the last one in which the texts differ. */
function lost(before: string, after: string): string[] {
  const [one, other] = [before.split('\n'), after.split('\n')]
  let head = 0
  while (head < one.length && one[head] === other[head]) head += 1
  let tail = 0
  while (tail < Math.min(one.length, other.length) - head && one.at(-1 - tail) === other.at(-1 - tail)) tail += 1
  return one.slice(head, one.length - tail)
}

const comments = (text: string): string[] => text.match(/(?<=^|\s)# .*/gm) ?? []

/** All places of scalars in a value. */
function* scalars(value: unknown, path: Path = []): Generator<Path> {
  if (Array.isArray(value)) for (const [at, one] of value.entries()) yield* scalars(one, [...path, at])
  else if (typeof value === 'object' && value !== null) for (const [key, one] of Object.entries(value)) yield* scalars(one, [...path, key])
  else yield path
}

const VALUES = ['plain', 'a: b # c', "it's", 'true', '12', '', 12, false, null, '${day}', '[x', 'two\nlines\n', 'no end\nline', '  begins\nwith spaces\n']

describe.each(texts)('%s', (_, text) => {
  const parsed = parse(text)
  const lines = text.split('\n').length

  it('is read', () => {
    expect(parsed.mistakes).toEqual([])
    expect(parsed.tasks.length).toBeGreaterThan(0)
  })

  it('sets every scalar to anything, and changes nothing else', () => {
    for (const path of scalars(parsed.value)) {
      for (const value of VALUES) {
        const after = set(parsed, path, value)
        const wanted = structuredClone(parsed.value) as Plain
        ;(valueAt(wanted, path.slice(0, -1)) as Record<string | number, unknown>)[path.at(-1) as string] = value
        expect([path, value, after.value]).toEqual([path, value, wanted])
        expect(comments(after.text).length).toBeGreaterThanOrEqual(comments(text).length - (String(valueAt(parsed.value, path)).match(/(?<=^|\s)# .*/gm) ?? []).length)
        const multiline = String(valueAt(parsed.value, path)).split('\n').length
        expect([path, value, lost(text, after.text).length <= multiline + 1]).toEqual([path, value, true])
      }
    }
  })

  it('takes every value out and puts it back', () => {
    for (const path of scalars(parsed.value)) {
      const without = unset(parsed, path)
      expect(valueAt(without.value, path)).not.toEqual(valueAt(parsed.value, path) ?? 'nothing')
      expect(lines - without.text.split('\n').length).toBeLessThanOrEqual(String(valueAt(parsed.value, path)).split('\n').length + 1)
    }
  })

  it('undoes to the same bytes', () => {
    for (const path of scalars(parsed.value)) {
      const value = valueAt(parsed.value, path)
      if (typeof value === 'string' && value.includes('\n')) continue
      const back = set(set(parsed, path, 'other'), path, value)
      expect(same(back.value, parsed.value)).toBe(true)
      expect(lost(text, back.text).length).toBeLessThanOrEqual(1) // quotes may differ
    }
  })

  it('adds a task, and touches no line', () => {
    const after = addTask(parsed, { name: 'new_one', type: 'SHELL', depends_on: ['a'], params: { script: 'a\nb\n' } })
    expect(after.tasks.at(-1)?.value).toEqual({ name: 'new_one', type: 'SHELL', depends_on: ['a'], params: { script: 'a\nb\n' } })
    expect(lost(text, after.text)).toEqual([])
  })

  it('renames every task with what names it', () => {
    for (const task of parsed.tasks) {
      const after = rename(parsed, task.name, 'another')
      expect(JSON.stringify(after.tasks.map((one) => one.dependsOn))).toBe(JSON.stringify(parsed.tasks.map((one) => one.dependsOn)).replaceAll(`"${task.name}"`, '"another"'))
      expect(comments(after.text)).toEqual(comments(text))
      expect(rename(after, 'another', task.name).text).toBe(text)
    }
  })

  it('removes every task, its edges, and no comment of others', () => {
    for (const task of parsed.tasks) {
      const after = removeTasks(parsed, [task.name])
      expect(after.tasks.map((one) => one.name)).toEqual(parsed.tasks.filter((one) => one !== task).map((one) => one.name))
      expect(after.tasks.some((one) => one.dependsOn.includes(task.name))).toBe(false)
    }
    expect(removeTasks(parsed, parsed.tasks.map((one) => one.name)).value?.tasks).toEqual([])
  })

  it('connects and parts again', () => {
    for (const source of parsed.tasks) {
      for (const target of parsed.tasks) {
        if (source === target || target.dependsOn.includes(source.name)) continue
        const after = connect(parsed, source.name, target.name)
        expect(after.tasks[target.index]?.dependsOn).toEqual([...target.dependsOn, source.name])
        expect(lost(text, after.text).length).toBeLessThanOrEqual(1)
        const back = disconnect(after, source.name, target.name)
        expect(back.tasks[target.index]?.dependsOn).toEqual(target.dependsOn)
        expect(lost(text, back.text).length).toBeLessThanOrEqual(1)
      }
    }
  })

  it('moves tasks with their lines', () => {
    for (const task of parsed.tasks.slice(1)) {
      const after = moveTask(parsed, task.name, -1)
      expect(after.tasks[task.index - 1]?.value).toEqual(task.value)
      expect(after.text.split('\n').sort()).toEqual(text.split('\n').sort())
    }
    expect(move(parsed, ['tasks'], 0, -1)).toBe(parsed)
  })

  it('copies tasks, and pastes them beside themselves under free names', () => {
    const names = parsed.tasks.map((task) => task.name)
    const text_ = copied(parsed, names)
    expect(parse(text_).value?.tasks).toEqual(parsed.value?.tasks)
    const done = paste(parsed, text_)
    expect(done?.names).toEqual(names.map((name) => `${name}_2`))
    expect(lost(text, done?.parsed.text ?? '')).toEqual([])
    const copies = done?.parsed.tasks.slice(names.length) ?? []
    expect(copies.map((one) => one.dependsOn)).toEqual(parsed.tasks.map((one) => one.dependsOn.map((name) => `${name}_2`)))
  })
})

describe('shapes', () => {
  const change = (text: string, how: (parsed: Parsed) => Parsed): string => how(parse(text)).text
  it.each<[string, string, (parsed: Parsed) => Parsed, string]>([
    ['an empty text gets a task', '', (p) => addTask(p, { name: 'a', type: 'SHELL' }), 'tasks:\n  - name: a\n    type: SHELL\n'],
    ['no newline at the end', 'name: x\ntasks:\n  - name: a\n    type: SHELL', (p) => addTask(p, { name: 'b', type: 'SHELL' }), 'name: x\ntasks:\n  - name: a\n    type: SHELL\n  - name: b\n    type: SHELL\n'],
    ['tasks that are null', 'name: x\ntasks:\n', (p) => addTask(p, { name: 'a', type: 'SHELL' }), 'name: x\ntasks:\n  - name: a\n    type: SHELL\n'],
    ['empty brackets', 'name: x\ntasks: []  # none yet\nlabels: {a: b}\n', (p) => set(p, ['labels', 'c'], 'd'), 'name: x\ntasks: []  # none yet\nlabels: {a: b, c: d}\n'],
    ['a list without indent', 'tasks:\n- name: a\n  type: SHELL\n', (p) => addTask(p, { name: 'b', type: 'SHELL' }), 'tasks:\n- name: a\n  type: SHELL\n- name: b\n  type: SHELL\n'],
    ['an edge of one that had none', 'tasks:\n  - name: a\n    type: SHELL\n    params: {script: x}\n  - {name: b, type: SHELL}\n', (p) => connect(p, 'b', 'a'), 'tasks:\n  - name: a\n    type: SHELL\n    depends_on: [b]\n    params: {script: x}\n  - {name: b, type: SHELL}\n'],
    ['an edge in brackets', 'tasks:\n  - {name: a, type: SHELL}\n  - {name: b, type: SHELL, depends_on: [c]}\n', (p) => connect(p, 'a', 'b'), 'tasks:\n  - {name: a, type: SHELL}\n  - {name: b, type: SHELL, depends_on: [c, a]}\n'],
    ['the last edge goes with its field', 'tasks:\n  - {name: b, type: SHELL, depends_on: [c]}\n', (p) => disconnect(p, 'c', 'b'), 'tasks:\n  - {name: b, type: SHELL}\n'],
    ['an edge in lines', 'tasks:\n  - name: b\n    depends_on:\n      - c # why\n      - d\n', (p) => disconnect(p, 'd', 'b'), 'tasks:\n  - name: b\n    depends_on:\n      - c # why\n'],
    ['a script of several lines in brackets', 'tasks:\n  - {name: a, type: SHELL, params: {script: x}}\n# end\n', (p) => setField(p, 'a', ['params', 'script'], 'x\ny\n'), 'tasks:\n  - name: a\n    type: SHELL\n    params:\n      script: |\n        x\n        y\n# end\n'],
    ['a comment stays behind the mark', 'script: x # why\nb: 1\n', (p) => set(p, ['script'], 'x\ny\n'), 'script: | # why\n  x\n  y\nb: 1\n'],
    ['a script becomes one line', 'script: |\n  x\n  y\nb: 1\n', (p) => set(p, ['script'], 'x'), 'script: x\nb: 1\n'],
    ['a field of params that were not there', 'tasks:\n  - name: a\n    type: SHELL\n    retries: 1\n', (p) => setField(p, 'a', ['params', 'script'], 'x'), 'tasks:\n  - name: a\n    type: SHELL\n    params:\n      script: x\n    retries: 1\n'],
    ['and away with it', 'tasks:\n  - name: a\n    params:\n      script: x\n    retries: 1\n', (p) => setField(p, 'a', ['params', 'script'], undefined), 'tasks:\n  - name: a\n    retries: 1\n'],
    ['quotes stay', `a: "x"\nb: 'y'\n`, (p) => set(set(p, ['a'], 'z'), ['b'], "it's"), `a: "z"\nb: 'it''s'\n`],
    ['a schedule in lines', 'schedules:\n  - {cron: "0 0 6 * * ?", missed: all}  # six\n', (p) => set(p, ['schedules', 0, 'cron'], '0 0 7 * * ?'), 'schedules:\n  - {cron: "0 0 7 * * ?", missed: all}  # six\n'],
    ['a list that grows in the middle', 'a: [1, 2]\n', (p) => set(p, ['a'], [1, 5, 2]), 'a: [1, 5, 2]\n'],
    ['a mapping of which one value differs', 'a:\n  b: 1 # b\n  c: 2\n', (p) => set(p, ['a'], { b: 3, c: 2 }), 'a:\n  b: 3 # b\n  c: 2\n'],
    ['windows line ends', 'a: 1\r\nb: 2\r\n', (p) => set(p, ['a'], 5), 'a: 5\r\nb: 2\r\n'],
  ])('%s', (_, text, how, after) => expect(change(text, how)).toBe(after))

  it('changes one place of those that an anchor fills, and refuses to change the anchor', () => {
    const text = 'x-a: &a {retries: 1}\ntasks:\n  - {name: a, params: *a}\n  - {name: b, params: *a}\n'
    const after = text.replace('*a', '{retries: 2}')
    expect(change(text, (p) => set(p, ['tasks', 0, 'params', 'retries'], 2))).toBe(after)
    expect(() => set(parse(text), ['x-a', 'retries'], 2)).toThrow(NotPatchable)
  })

  it('puts a value over one that is merged in', () => {
    const text = 'x-a: &a {retries: 1}\ntasks:\n  - name: a\n    <<: *a\n'
    expect(change(text, (p) => setField(p, 'a', ['retries'], 2))).toBe(text.replace('    <<', '    retries: 2\n    <<'))
  })

  it('inserts into a list at each place', () => {
    for (const text of ['a: [1, 2]\n', 'a:\n  - 1 # one\n  - 2\nb: 3\n', 'a: []\n']) {
      const parsed = parse(text)
      const list = valueAt(parsed.value, ['a']) as unknown[]
      for (let at = 0; at <= list.length; at += 1) expect(insert(parsed, ['a'], at, 9).value).toEqual({ ...parsed.value, a: list.toSpliced(at, 0, 9) })
    }
  })
})
