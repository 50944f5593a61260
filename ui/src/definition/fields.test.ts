import { expect, test } from 'vitest'
import { SCHEDULE_FIELDS, TASK_FIELDS, WORKFLOW_FIELDS, WORKFLOW_ORDER } from './fields'

test('fields, their order, their kinds and defaults come from the schema of definitions', () => {
  const kinds = (fields: typeof TASK_FIELDS) => Object.fromEntries(fields.map((one) => [one.name, one.field]))
  expect(WORKFLOW_ORDER.slice(0, 5)).toEqual(['project', 'name', 'description', 'owner', 'labels'])
  expect(kinds(WORKFLOW_FIELDS)).toMatchObject({ owner: { kind: 'text' }, labels: { kind: 'pairs' }, timezone: { ref: { to: 'zone' } }, priority: { kind: 'choice' }, deadline: { kind: 'text', isNumberToo: true } })
  expect(kinds(TASK_FIELDS)).toMatchObject({ retries: { kind: 'number', isWhole: true, max: 100 }, resources: { kind: 'texts', ref: { to: 'resource' } }, publish: { kind: 'pairs' } })
  expect(kinds(SCHEDULE_FIELDS)).toMatchObject({ calendar: { ref: { to: 'calendar' } }, missed: { kind: 'choice', options: ['skip', 'last', 'all'] } })
  const standards = Object.fromEntries(WORKFLOW_FIELDS.map((one) => [one.name, one.standard]))
  expect(standards).toMatchObject({ owner: undefined, priority: 'MEDIUM', max_active: 1 })
  for (const one of [...WORKFLOW_FIELDS, ...TASK_FIELDS, ...SCHEDULE_FIELDS]) expect(one.description, one.name).not.toBe('')
})
