/** What a rule watches itself, since no event tells of it: deadlines, successes that do not come. Pure. */
import type { AlertRuleIn } from '@/api/types'
import { writtenDuration } from '@/shared/time/duration'

type Trigger = AlertRuleIn['triggers'][number]

export const WEEKDAYS = ['MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'SUN'] as const
type Weekday = (typeof WEEKDAYS)[number]

/** As the form has them; each is there whatever triggers are chosen, and sent only with its own. */
export interface Conditions {
  deadline: {
    mode: 'fixed' | 'usual'
    at: string
    percentile: number
    runs: number
    margin: string
    days: Weekday[]
    timezone: string
  }
  no_success_for: string
  success_rate: { percent: number; runs: number }
}

/** As the API stores them: durations are seconds. */
export interface StoredConditions {
  deadline: { at: string | null; percentile: number | null; runs: number; margin: number; days: Weekday[]; timezone: string } | null
  no_success_for: number | null
  success_rate: { below: number; runs: number } | null
}

type Field = keyof Conditions

const FIELDS: Partial<Record<Trigger, Field>> = {
  'workflow.not-started': 'deadline',
  'workflow.not-finished': 'deadline',
  'workflow.no-success': 'no_success_for',
  'workflow.low-success-rate': 'success_rate',
}

/** Says whether one of the triggers uses a field. */
export function uses(triggers: readonly Trigger[], field: Field): boolean {
  return triggers.some((one) => FIELDS[one] === field)
}

export function freshConditions(timezone: string): Conditions {
  return {
    deadline: { mode: 'fixed', at: '07:30', percentile: 95, runs: 30, margin: '10m', days: [...WEEKDAYS], timezone },
    no_success_for: '26h',
    success_rate: { percent: 90, runs: 20 },
  }
}

export function conditionsOf({ deadline, no_success_for, success_rate }: StoredConditions, timezone: string): Conditions {
  const fresh = freshConditions(timezone)
  return {
    deadline: deadline
      ? {
          ...deadline,
          mode: deadline.at === null ? 'usual' : 'fixed',
          at: deadline.at ?? fresh.deadline.at,
          percentile: deadline.percentile ?? fresh.deadline.percentile,
          margin: writtenDuration(deadline.margin),
        }
      : fresh.deadline,
    no_success_for: no_success_for === null ? fresh.no_success_for : writtenDuration(no_success_for),
    success_rate: success_rate ? { percent: percentOf(success_rate.below), runs: success_rate.runs } : fresh.success_rate,
  }
}

/** Returns what is sent: only what the triggers use. */
export function conditionBodies(triggers: readonly Trigger[], { deadline, no_success_for, success_rate }: Conditions): Pick<AlertRuleIn, Field> {
  return {
    deadline: uses(triggers, 'deadline') ? deadlineBody(deadline) : null,
    no_success_for: uses(triggers, 'no_success_for') ? no_success_for.trim() : null,
    success_rate: uses(triggers, 'success_rate') ? { below: success_rate.percent / 100, runs: success_rate.runs } : null,
  }
}

function deadlineBody({ mode, at, percentile, runs, margin, days, timezone }: Conditions['deadline']): NonNullable<AlertRuleIn['deadline']> {
  const when = { days, timezone }
  // What the form does not show keeps the API's defaults.
  return mode === 'fixed' ? ({ at, ...when } as NonNullable<AlertRuleIn['deadline']>) : { percentile, runs, margin: margin?.trim() || '0s', ...when }
}

function percentOf(share: number): number {
  return Number((share * 100).toFixed(2))
}
