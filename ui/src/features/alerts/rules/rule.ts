/** Rules as their form has them: durations as people write them, nothing that is not given. Pure. */
import type { AlertRule, AlertRuleIn } from '@/api/types'
import { writtenDuration } from '@/shared/time/duration'
import { ownZone } from '../fields'
import { conditionBodies, conditionsOf, freshConditions, type Conditions, type StoredConditions } from './conditions'

export type Trigger = AlertRuleIn['triggers'][number]

/** In the order of the form. A trigger that the API has and this does not name ends the build. */
const ALL: Record<Trigger, true> = {
  'run.failed': true,
  'run.stopped': true,
  'run.timed-out': true,
  'run.late': true,
  'run.succeeded': true,
  'task.failed': true,
  'task.retrying': true,
  'task.timed-out': true,
  'task.lost': true,
  'task.warned': true,
  'task.succeeded': true,
  'workflow.not-started': true,
  'workflow.not-finished': true,
  'workflow.no-success': true,
  'workflow.low-success-rate': true,
  'schedule.skipped': true,
  'schedule.paused': true,
  'backfill.failed': true,
  'backfill.done': true,
  'worker.gone': true,
  'master.gone': true,
  'cluster.degraded': true,
}

const OF_CLUSTER = new Set(['worker', 'master'])

export interface TriggerGroup {
  name: string // run, task …
  triggers: readonly Trigger[]
}

/** Returns the triggers by what they are of. */
export function triggerGroups(triggers: readonly Trigger[] = Object.keys(ALL) as Trigger[]): TriggerGroup[] {
  const names = [...new Set(triggers.map(groupOf))]
  return names.map((name) => ({ name, triggers: triggers.filter((one) => groupOf(one) === name) }))
}

export function groupOf(trigger: string): string {
  const what = trigger.slice(0, trigger.indexOf('.'))
  return OF_CLUSTER.has(what) ? 'cluster' : what
}

/** What a rule with these triggers can ask, as the API sees it. */
export function shapeOf(triggers: readonly Trigger[]) {
  const groups = new Set(triggers.map(groupOf))
  const isOfCluster = groups.has('cluster')
  return {
    hasTasks: groups.has('task'),
    hasWorkflows: !isOfCluster,
    needsWorkflows: groups.has('workflow'), // they are watched, so they have to be named
    hasLabels: !isOfCluster && !groups.has('workflow'), // runs have them
    isMixed: isOfCluster && groups.size > 1,
  }
}

export interface Quiet {
  since: string
  until: string
  days: string[]
  timezone: string
}

export interface Values extends Conditions {
  name: string
  description: string
  enabled: boolean
  triggers: Trigger[]
  workflows: string[]
  tasks: string[]
  labels: string[]
  receivers: string[]
  severity: NonNullable<AlertRuleIn['severity']>
  language: NonNullable<AlertRuleIn['language']>
  group_for: string
  repeat_every: string
  tell_recovery: boolean
  quiet: Quiet[]
  escalation: { after: string; receivers: string[] }[]
  templates: { subject: string; text: string }
}

/** What a new rule begins with: what most people want to be told of. */
export const FRESH: Partial<Values> = {
  ...freshConditions(ownZone()),
  enabled: true,
  triggers: ['run.failed'],
  severity: 'warning',
  language: 'en',
  group_for: '30s',
  tell_recovery: true,
  quiet: [],
  escalation: [],
}

/** A rule as the API stores it: durations are seconds. */
type Stored = Omit<Values, 'name' | 'group_for' | 'repeat_every' | 'escalation' | keyof Conditions> & StoredConditions & {
  group_for: number
  repeat_every: number | null
  escalation: { after: number; receivers: string[] }[]
}

export function specOf(rule: AlertRule): Stored {
  return rule.spec as unknown as Stored
}

export function valuesOf(rule: AlertRule): Partial<Values> {
  const spec = specOf(rule)
  return {
    ...spec,
    ...conditionsOf(spec, ownZone()),
    name: rule.name,
    group_for: writtenDuration(spec.group_for),
    repeat_every: spec.repeat_every === null ? '' : writtenDuration(spec.repeat_every),
    escalation: spec.escalation.map((step) => ({ ...step, after: writtenDuration(step.after) })),
  }
}

/** Returns the request: what is empty is left to the API's defaults. */
export function bodyOf({ triggers, receivers, severity, language, enabled, tell_recovery, ...values }: Values): AlertRuleIn {
  const { hasTasks, hasWorkflows, hasLabels } = shapeOf(triggers)
  return {
    triggers,
    receivers,
    severity,
    language,
    enabled,
    tell_recovery,
    description: values.description ?? '',
    ...conditionBodies(triggers, values),
    // What does not fit these triggers is of others, which are not chosen any more.
    workflows: hasWorkflows ? (values.workflows ?? []) : [],
    tasks: hasTasks ? (values.tasks ?? []) : [],
    labels: hasLabels ? (values.labels ?? []) : [],
    group_for: values.group_for?.trim() || '0s',
    repeat_every: values.repeat_every?.trim() || null,
    quiet: (values.quiet ?? []) as NonNullable<AlertRuleIn['quiet']>,
    escalation: values.escalation ?? [],
    templates: { subject: values.templates?.subject ?? '', text: values.templates?.text ?? '' },
  }
}
