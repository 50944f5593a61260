/** What a batch of events means for what the pages hold. Pure. */
import type { ChangeEvent } from './stream'

export interface Changes {
  /** New states by id, to be shown at once. */
  instances: Map<number, { state: string; reason: string | null }>
  tasks: Map<number, TaskChange>
  /** First parts of query keys, joined by /, whose answers are not the whole truth any more. */
  stale: Set<string>
  staleInstances: Set<number>
}

export interface TaskChange {
  instance: number | null
  task: string
  attempt: number
  state: string
  worker: string | null
  reason: string | null
  exit_code: number | null
}

/** Returns what the events change; of several about one thing the last counts. */
export function changesOf(events: readonly ChangeEvent[]): Changes {
  const changes: Changes = {
    instances: new Map(),
    tasks: new Map(),
    stale: new Set(),
    staleInstances: new Set(),
  }
  for (const event of events) {
    const { kind, data, instance_id: instance, task_instance_id: task } = event
    if (kind === 'instance.state' && instance !== null) {
      changes.instances.set(instance, { state: text(data.state), reason: orNull(data.reason) })
      changes.stale.add('instances').add('workflows/list').add('dependencies')
    } else if (kind.startsWith('task.') && task !== null && kind !== 'task.overdue') {
      changes.tasks.set(task, {
        instance,
        task: text(data.task),
        attempt: Number(data.attempt),
        state: text(data.state),
        worker: orNull(data.worker),
        reason: orNull(data.reason),
        exit_code: typeof data.exit_code === 'number' ? data.exit_code : null,
      })
    } else if (kind === 'workflow.published') {
      changes.stale.add('workflows').add('schedules').add('projects').add('dependencies')
    } else if (kind === 'backfill.state') {
      changes.stale.add('backfills')
    } else if (kind === 'schedule.state') {
      changes.stale.add('schedules')
    } else if (kind.startsWith('alert.')) {
      changes.stale.add('alerts')
    }
    if (instance !== null) changes.staleInstances.add(instance)
  }
  return changes
}

interface WithTasks {
  id: number
  state: string
  reason?: string | null
  tasks?: { id: number; state: string; worker: string | null; reason: string | null; exit_code: number | null }[]
}

/** Returns an instance with the changes in it; the same object if there are none. */
export function patched<T extends WithTasks>(instance: T, changes: Changes): T {
  const own = changes.instances.get(instance.id)
  const touched = instance.tasks?.some((task) => changes.tasks.has(task.id)) ?? false
  if (!own && !touched) return instance
  const tasks = instance.tasks?.map((task) => {
    const change = changes.tasks.get(task.id)
    if (!change) return task
    const { state, worker, reason, exit_code } = change
    return { ...task, state, worker: worker ?? task.worker, reason, exit_code }
  })
  return { ...instance, ...(own ?? {}), ...(tasks ? { tasks } : {}) }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function orNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
