import { describe, expect, it } from 'vitest'
import type { Resource } from '@/api/types'
import { entriesOf, isPath } from './folders'

const file = (path: string, size = 1): Resource => ({ path, size, project: 'p', version: 1, sha256: '', created_at: '', ended_at: null, instance_id: null })
const files = [file('b.txt', 5), file('a/x.sh', 2), file('a/deep/y.sh', 3), file('ab/z')]

describe('entriesOf', () => {
  it('shows what lies directly in a folder, folders first', () => {
    expect(entriesOf(files, '').map(({ path, files: count, size }) => [path, count, size])).toEqual([['a', 2, 5], ['ab', 1, 1], ['b.txt', 1, 5]])
    expect(entriesOf(files, 'a').map(({ path, file: found }) => [path, found !== null])).toEqual([['a/deep', false], ['a/x.sh', true]])
  })
})

describe('isPath', () => {
  it.each([['etl/clean.sh', true], ['a/../b', false], ['/a', false], ['a//b', false], ['-x', false], ['a@3', false], ['汉字/x', true], ['x'.repeat(501), false]])('%s: %s', (path, expected) => expect(isPath(path)).toBe(expected))
})
