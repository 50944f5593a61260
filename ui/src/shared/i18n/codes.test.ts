import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { codesZh, type Say } from './codes.zh'

/** The codes with their arguments, as the page of codes has them. */
function documented(): [string, string[]][] {
  const text = readFileSync(join(import.meta.dirname, '../../../../docs/codes.md'), 'utf8')
  return [...text.matchAll(/^\| `([a-z_.]+)` \| (.+?) \|/gm)].map(([, code, names]) => [code!, [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!)])
}

describe('codes in Chinese', () => {
  it.each(documented())('%s says all of its arguments', (code, names) => {
    const say: Say | undefined = (codesZh as Record<string, Say>)[code]
    if (!say) throw new Error(`${code} is not translated`)
    const given = Object.fromEntries(names.map((name) => [name, name === 'is_at_least' || name === 'is_final' ? 1 : `<${name}>`]))
    const text = say(given, (state) => `[${String(state)}]`)
    expect(text).toMatch(/[\u4e00-\u9fff]/)
    // What is behind a word of its own is not said twice: which task, workflow or cause.
    const left = names.filter((name) => !name.startsWith('is_') && !['cause', 'instance', 'upstream'].includes(name) && !text.includes(`<${name}>`))
    expect(left).toEqual([])
    expect(text).not.toMatch(/undefined|null/)
  })

  it('leaves out what there is not', () => {
    const nothing = (code: keyof typeof codesZh, given: Record<string, null | string | number>): string => codesZh[code](given, String)
    expect(nothing('reason.exit_code', { exit_code: 3, output: null })).toBe('退出码 3')
    expect(nothing('reason.worker_gone', { worker: null, is_final: 0 })).toBe('其工作节点已离开')
    expect(nothing('reason.not_started', { task: null })).toBe('未启动：另一个任务失败')
    expect(nothing('dependency.run', { project: 'p', workflow: 'w', upstream: null, from: 'f', date: 'today', instance: null, state: null })).toBe('p/w 在 f（today）：还没有运行')
  })
})
