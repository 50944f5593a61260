import { expect, it } from 'vitest'
import type { ChangeEvent } from '@/live/stream'
import { momentAt } from './replay'

const event = (kind: string, data: Record<string, unknown>): ChangeEvent => ({ id: 1, at: '', kind, project: 'p', instance_id: 1, task_instance_id: 1, data })
const events = [
  event('instance.state', { state: 'RUNNING' }),
  event('task.state', { task: 'a', attempt: 1, state: 'RUNNING' }),
  event('task.overdue', { task: 'a' }),
  event('task.state', { task: 'a', attempt: 2, state: 'QUEUED' }),
  event('task.state', { task: 'a', attempt: 1, state: 'LOST' }),
  event('instance.state', { state: 'FAILED' }),
]

it('knows nothing before the first event', () => {
  expect(momentAt(events, 0)).toEqual({ run: null, tasks: new Map() })
})

it('shows what had happened by then', () => {
  expect(momentAt(events, 2)).toEqual({ run: 'RUNNING', tasks: new Map([['a', 'RUNNING']]) })
  expect(momentAt(events, 6).run).toBe('FAILED')
})

it('goes by the newest attempt, whatever an older one says later', () => {
  expect(momentAt(events, 5).tasks.get('a')).toBe('QUEUED')
})
