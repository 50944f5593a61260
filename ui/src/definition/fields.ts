/** The fields of workflows, tasks and schedules, as forms show them. The API's description has the same names. */
import type { Definition, ScheduleSpec, TaskSpec } from '@/api/types'
import type { TextKey } from '@/shared/i18n'
import type { Field } from '@/shared/schema-form/schema'

export interface OwnField {
  name: string
  field: Field
  standard?: unknown
  help: TextKey
}

const PRIORITIES = ['HIGHEST', 'HIGH', 'MEDIUM', 'LOW', 'LOWEST']
const duration: Field = { kind: 'text', isNumberToo: true }
const priority: Field = { kind: 'choice', options: PRIORITIES }
const named = (to: string): Field => ({ kind: 'text', ref: { to } })
const number = (min: number, max: number, isWhole = true): Field => ({ kind: 'number', isWhole, min, max })

type Fields<Spec, Left extends keyof Spec> = Record<Exclude<keyof Spec & string, Left>, Omit<OwnField, 'name'>>

// Name, type, edges and params have controls of their own.
const TASK: Fields<TaskSpec, 'name' | 'type' | 'params' | 'depends_on'> = {
  description: { field: { kind: 'text' }, help: 'field.description' },
  enabled: { field: { kind: 'boolean' }, standard: true, help: 'field.enabled' },
  run_when: { field: { kind: 'choice', options: ['all_success', 'all_done', 'one_success', 'any_failed', 'always'] }, standard: 'all_success', help: 'field.run_when' },
  worker_group: { field: named('worker-group'), standard: 'default', help: 'field.worker_group' },
  environment: { field: named('environment'), help: 'field.environment' },
  concurrency_group: { field: named('concurrency-group'), help: 'field.concurrency_group' },
  priority: { field: priority, standard: 'MEDIUM', help: 'field.priority' },
  retries: { field: number(0, 100), standard: 0, help: 'field.retries' },
  retry_delay: { field: duration, standard: '0', help: 'field.retry_delay' },
  retry_backoff: { field: number(1, 100, false), standard: 1, help: 'field.retry_backoff' },
  retry_max_delay: { field: duration, help: 'field.retry_max_delay' },
  retry_jitter: { field: number(0, 1, false), standard: 0, help: 'field.retry_jitter' },
  timeout: { field: duration, help: 'field.timeout' },
  timeout_action: { field: { kind: 'choice', options: ['fail', 'warn', 'both'] }, standard: 'fail', help: 'field.timeout_action' },
  delay: { field: duration, standard: '0', help: 'field.delay' },
  parameters: { field: { kind: 'pairs' }, help: 'field.parameters' },
  resources: { field: { kind: 'texts', ref: { to: 'resource' } }, help: 'field.resources' },
  publish: { field: { kind: 'pairs' }, help: 'field.publish' },
  outputs_from_log: { field: { kind: 'boolean' }, standard: false, help: 'field.outputs_from_log' },
}

const WORKFLOW: Fields<Definition, 'name' | 'project' | 'tasks' | 'schedules'> = {
  description: { field: { kind: 'text' }, help: 'field.description' },
  owner: { field: { kind: 'text' }, help: 'field.owner' },
  timezone: { field: named('zone'), standard: 'UTC', help: 'field.timezone' },
  parameters: { field: { kind: 'any' }, help: 'field.workflowParameters' },
  labels: { field: { kind: 'pairs' }, help: 'field.labels' },
  overlap: { field: { kind: 'choice', options: ['allow', 'queue', 'queue_by_priority', 'queue_latest', 'skip_new', 'replace'] }, standard: 'allow', help: 'field.overlap' },
  max_active: { field: number(1, 10_000), standard: 1, help: 'field.max_active' },
  max_queued: { field: number(1, 100_000), standard: 1000, help: 'field.max_queued' },
  on_failure: { field: { kind: 'choice', options: ['continue', 'finish_running', 'fail_fast', 'ignore'] }, standard: 'continue', help: 'field.on_failure' },
  timeout: { field: duration, help: 'field.workflowTimeout' },
  timeout_action: { field: { kind: 'choice', options: ['warn', 'stop', 'both'] }, standard: 'warn', help: 'field.workflowTimeoutAction' },
  deadline: { field: duration, help: 'field.deadline' },
  priority: { field: priority, standard: 'MEDIUM', help: 'field.priority' },
  environment: { field: named('environment'), help: 'field.environment' },
  backfill_base: { field: { kind: 'choice', options: ['logical_time', 'next_day'] }, standard: 'logical_time', help: 'field.backfill_base' },
}

// Cron, zone and clock changes have controls of their own.
const SCHEDULE: Fields<ScheduleSpec, 'cron' | 'timezone' | 'on_gap' | 'on_overlap'> = {
  enabled: { field: { kind: 'boolean' }, standard: true, help: 'field.scheduleEnabled' },
  missed: { field: { kind: 'choice', options: ['skip', 'last', 'all'] }, standard: 'last', help: 'field.missed' },
  missed_window: { field: duration, help: 'field.missed_window' },
  calendar: { field: named('calendar'), help: 'field.calendar' },
  exclude: { field: { kind: 'texts' }, help: 'field.exclude' },
  start: { field: { kind: 'text' }, help: 'field.start' },
  end: { field: { kind: 'text' }, help: 'field.end' },
  parameters: { field: { kind: 'pairs' }, help: 'field.scheduleParameters' },
  priority: { field: priority, help: 'field.priority' },
}

const listed = (fields: Record<string, Omit<OwnField, 'name'>>): OwnField[] => Object.entries(fields).map(([name, one]) => ({ name, ...one }))

export const TASK_FIELDS = listed(TASK)
export const WORKFLOW_FIELDS = listed(WORKFLOW)
export const SCHEDULE_FIELDS = listed(SCHEDULE)
