/** What commands would do to a run: the preview before they are sent. Pure. */
import { downstream, upstream } from '@/graph/reach'

export interface TaskNow {
  name: string
  state: string
  dependsOn: readonly string[]
}

export type RunCommand = 'PAUSE' | 'RESUME' | 'STOP' | 'RECOVER' | 'RERUN'
export type TaskCommand = 'RERUN_TASKS' | 'KILL_TASK' | 'FORCE_SUCCESS'
export type Mode = 'only' | 'upstream' | 'downstream'

const HANDED_OUT = new Set(['QUEUED', 'CLAIMED', 'RUNNING'])
const WENT_WRONG = new Set(['FAILED', 'KILLED', 'LOST'])

/** Returns whether a run takes a command in its state. docs/semantics.md has the table. */
export function takes(command: RunCommand, state: string): boolean {
  switch (command) {
    case 'PAUSE':
      return state === 'QUEUED' || state === 'RUNNING'
    case 'RESUME':
      return ['PAUSED', 'PAUSING', 'STOPPED'].includes(state)
    case 'STOP':
      return ['QUEUED', 'RUNNING', 'PAUSING', 'PAUSED'].includes(state)
    case 'RECOVER':
      return state === 'RUNNING' || state === 'FAILED'
    case 'RERUN':
      return state !== 'QUEUED' && state !== 'STOPPING'
  }
}

export interface Affected {
  /** Tasks that the command is about. */
  direct: string[]
  /** Tasks that are judged again because of it. */
  behind: string[]
}

/** Returns the tasks that a command touches; behind: what was skipped because of them. */
export function affected(command: RunCommand, tasks: readonly TaskNow[]): Affected {
  switch (command) {
    case 'PAUSE':
    case 'RESUME': {
      const held = command === 'PAUSE' ? ['QUEUED', 'WAITING', 'UP_FOR_RETRY', 'DELAYED', 'BLOCKED'] : ['PAUSED', 'KILLED']
      return { direct: names(tasks, (task) => held.includes(task.state)), behind: [] }
    }
    case 'STOP':
      return { direct: names(tasks, (task) => HANDED_OUT.has(task.state)), behind: [] }
    case 'RECOVER': {
      const direct = names(tasks, (task) => WENT_WRONG.has(task.state))
      return { direct, behind: skippedBehind(tasks, direct) }
    }
    case 'RERUN':
      return { direct: tasks.map((task) => task.name), behind: [] }
  }
}

/** Returns the tasks that run again. */
export function rerun(tasks: readonly TaskNow[], chosen: readonly string[], mode: Mode): Affected {
  const found =
    mode === 'only'
      ? new Set(chosen)
      : mode === 'upstream'
        ? upstream(tasks, chosen)
        : downstream(tasks, chosen)
  const direct = names(tasks, (task) => found.has(task.name))
  return { direct, behind: skippedBehind(tasks, direct) }
}

function skippedBehind(tasks: readonly TaskNow[], from: readonly string[]): string[] {
  const behind = downstream(tasks, from)
  return names(
    tasks,
    (task) => behind.has(task.name) && !from.includes(task.name) && task.state === 'SKIPPED',
  )
}

function names(tasks: readonly TaskNow[], of: (task: TaskNow) => boolean): string[] {
  return tasks.filter(of).map((task) => task.name)
}
