import { expect, it } from 'vitest'
import type { AlertRule } from '@/api/types'
import { bodyOf, shapeOf, triggerGroups, valuesOf, type Values } from './rule'

const stored: AlertRule = {
  name: 'night',
  version: 3,
  created_at: '2026-11-21T05:00:00Z',
  updated_at: '2026-11-21T05:00:00Z',
  spec: {
    triggers: ['run.failed', 'run.late'],
    workflows: ['load-*'],
    tasks: ['left over'],
    labels: ['team=flights'],
    receivers: ['on-call'],
    deadline: null,
    no_success_for: null,
    success_rate: null,
    severity: 'critical',
    enabled: true,
    group_for: 30,
    repeat_every: null,
    tell_recovery: true,
    quiet: [{ since: '22:00', until: '07:00', days: ['SAT', 'SUN'], timezone: 'Europe/Berlin' }],
    escalation: [{ after: 900, receivers: ['head-of-data'] }],
    language: 'zh',
    templates: { subject: 'Oh no', text: '' },
    description: '',
  },
}

it('shows durations as people write them', () => {
  expect(valuesOf(stored)).toMatchObject({ name: 'night', group_for: '30s', repeat_every: '', escalation: [{ after: '15m', receivers: ['head-of-data'] }] })
})

it('sends what was shown, without what is about nothing', () => {
  const body = bodyOf(valuesOf(stored) as Values)
  expect(body).toEqual({ ...stored.spec, tasks: [], group_for: '30s', escalation: [{ after: '15m', receivers: ['head-of-data'] }] })
})

it('leaves tasks to rules that are about tasks', () => {
  const values = { ...(valuesOf(stored) as Values), triggers: ['task.failed' as const], tasks: ['load_*'], repeat_every: ' 1h ' }
  expect(bodyOf(values)).toMatchObject({ tasks: ['load_*'], repeat_every: '1h' })
})

it('has each trigger in the group of what it is of', () => {
  const groups = triggerGroups()
  expect(groups.map((group) => group.name)).toEqual(['run', 'task', 'workflow', 'schedule', 'backfill', 'cluster'])
  expect(groups.at(-1)?.triggers).toContain('worker.gone')
  expect(groups[1]?.triggers).toContain('task.lost')
})

it('knows what triggers can ask for', () => {
  expect(shapeOf(['run.failed', 'workflow.no-success'])).toMatchObject({ needsWorkflows: true, hasLabels: false, isMixed: false })
  expect(shapeOf(['worker.gone', 'cluster.degraded'])).toMatchObject({ hasWorkflows: false, hasLabels: false, isMixed: false })
  expect(shapeOf(['worker.gone', 'run.failed']).isMixed).toBe(true)
})
