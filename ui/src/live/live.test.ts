import { describe, expect, it } from 'vitest'
import { changesOf, patched } from './apply'
import { SseParser } from './sse'
import type { ChangeEvent } from './stream'

const event = (kind: string, data: object, ids: Partial<ChangeEvent> = {}): ChangeEvent => ({
  id: 1,
  at: '2026-11-21T06:00:00Z',
  kind,
  project: 'p',
  instance_id: 17,
  task_instance_id: null,
  data: { ...data },
  ...ids,
})

describe('SseParser', () => {
  it('puts events together that come in pieces', () => {
    const parser = new SseParser()
    expect(parser.feed(': connected\n\nid: 4\nevent: task')).toEqual([])
    expect(parser.feed('.state\ndata: {"a":\ndata: 1}\n\nid: 5\n')).toEqual([
      { id: '4', event: 'task.state', data: '{"a":\n1}' },
    ])
    expect(parser.feed('data: x\n\n')).toEqual([{ id: '5', event: 'message', data: 'x' }])
  })
  it('keeps what has colons and leading spaces', () => {
    expect(new SseParser().feed('data:  a: b\n\n')[0]?.data).toBe(' a: b')
  })
})

describe('changesOf', () => {
  it('knows what lists an event makes old', () => {
    const stale = (kind: string) => [...changesOf([event(kind, {}, { instance_id: null })]).stale]
    expect(stale('alert.state')).toEqual(['alerts'])
    expect(stale('schedule.state')).toEqual(['schedules'])
    expect(stale('backfill.state')).toEqual(['backfills'])
  })
  it('keeps the last state of each attempt', () => {
    const task = { task: 'load', attempt: 1 }
    const changes = changesOf([
      event('task.state', { ...task, state: 'RUNNING' }, { task_instance_id: 91 }),
      event('task.state', { ...task, state: 'FAILED', exit_code: 3 }, { task_instance_id: 91 }),
      event('instance.state', { state: 'FAILED', reason: 'load failed' }),
    ])
    expect(changes.tasks.get(91)).toMatchObject({ state: 'FAILED', exit_code: 3 })
    expect(changes.instances.get(17)).toEqual({ state: 'FAILED', reason: 'load failed' })
    expect([...changes.staleInstances]).toEqual([17])
    expect(changes.stale.has('instances')).toBe(true)
  })
  it('marks what was published', () => {
    const changes = changesOf([event('workflow.published', {}, { instance_id: null })])
    expect([...changes.stale]).toEqual(['workflows', 'schedules', 'projects', 'dependencies'])
  })
})

describe('patched', () => {
  const instance = {
    id: 17,
    state: 'RUNNING',
    reason: null as string | null,
    tasks: [
      { id: 91, state: 'RUNNING', worker: 'w', reason: null as string | null, exit_code: null as number | null },
      { id: 92, state: 'WAITING', worker: null as string | null, reason: null, exit_code: null },
    ],
  }
  it('changes the attempts that are named, and no others', () => {
    const changes = changesOf([
      event('task.state', { task: 'a', attempt: 1, state: 'SUCCEEDED' }, { task_instance_id: 91 }),
    ])
    const after = patched(instance, changes)
    expect(after.tasks[0]).toMatchObject({ state: 'SUCCEEDED', worker: 'w' })
    expect(after.tasks[1]).toBe(instance.tasks[1])
  })
  it('returns the same object when nothing is about it', () => {
    expect(patched(instance, changesOf([event('instance.state', { state: 'FAILED' }, { instance_id: 3 })]))).toBe(instance)
  })
})
