import { describe, expect, it } from 'vitest'
import type { DependencyGraph, DependencyNode } from '@/api/types'
import { dayAfter, dayIn, pictureOf, rowsOf } from './dependencies'

const node = (id: string): DependencyNode => ({ id, project: id.split('/')[0]!, workflow: id.split('/')[1]!, is_known: true, timezone: 'UTC', distance: 0, since: '', until: '', state: null, runs: [], has_more: false, started_at: null, finished_at: null, hidden: 0 })
const graph = (ids: string[], edges: [string, string][], critical: string[] = []): DependencyGraph => ({ date: '2026-03-11', nodes: ids.map(node), edges: edges.map(([source, target]) => ({ source, target, tasks: [], is_allowed: true, since: '', until: '', run: null })), critical, is_cut: false })

describe('What waits for what', () => {
  it('is listed in the order in which it can be done', () => {
    const rows = rowsOf(graph(['p/c', 'p/b', 'p/a'], [['p/a', 'p/b'], ['p/b', 'p/c'], ['p/c', 'p/c']], ['p/a', 'p/b']))
    expect(rows.map((row) => [row.id, row.waitsFor, row.isCritical])).toEqual([
      ['p/a', [], true],
      ['p/b', ['p/a'], true],
      ['p/c', ['p/b', 'p/c'], false],
    ])
  })

  it('tells which runs of another day are looked for', () => {
    const found = graph(['p/a', 'p/b'], [['p/a', 'p/b']])
    const task = { task: 'wait', kind: 'DEPENDENT' as const, date: 'last1Days', of_task: null }
    found.edges = [{ ...found.edges[0]!, tasks: [task, task] }]
    expect(rowsOf(found)[1]!.looks).toEqual([{ source: 'p/a', dates: ['last1Days'] }])
    found.edges = [{ ...found.edges[0]!, since: '2026-03-10T00:00:00Z' }]
    expect(rowsOf(found)[1]!.looks).toEqual([{ source: 'p/a', dates: ['last1Days'], other: { since: '2026-03-10T00:00:00Z', run: null } }])
  })

  it('is listed also where it goes around in a circle', () => {
    expect(rowsOf(graph(['p/a', 'p/b'], [['p/a', 'p/b'], ['p/b', 'p/a']])).map((row) => row.id)).toEqual(['p/a', 'p/b'])
  })

  it('is drawn without what waits for itself, with names that are short at home', () => {
    const rows = rowsOf(graph(['p/a', 'q/b'], [['p/a', 'p/a'], ['p/a', 'q/b']]))
    expect(pictureOf(rows, 'p', () => 'n').map((box) => [box.label, box.dependsOn])).toEqual([['a', []], ['q/b', ['p/a']]])
  })
})

it('reckons with days', () => {
  expect([dayAfter('2026-02-28', 1), dayAfter('2026-01-01', -1)]).toEqual(['2026-03-01', '2025-12-31'])
  expect(dayIn('2026-03-10T23:30:00Z', 'Europe/Berlin')).toBe('2026-03-11')
})
