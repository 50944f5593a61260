/** Values of the backfill form: what is sent for them. Pure. */
import type { BackfillIn } from '@/api/types'

export interface PlanValues {
  from: string
  to: string
  by: 'auto' | 'schedule' | 'day'
  only: 'all' | 'missing' | 'failed'
  reprocess: 'none' | 'failed' | 'all'
  parallel: number
  order: 'ascending' | 'descending'
  onFailure: 'auto' | 'stop' | 'continue'
  downstream: 'none' | 'direct' | 'all'
  priority: 'HIGHEST' | 'HIGH' | 'MEDIUM' | 'LOW' | 'LOWEST' | undefined
  tasks: string[]
  mode: 'only' | 'upstream' | 'downstream'
  parameters: string
}

export const START: PlanValues = {
  from: '',
  to: '',
  by: 'auto',
  only: 'all',
  reprocess: 'none',
  parallel: 1,
  order: 'ascending',
  onFailure: 'auto',
  downstream: 'none',
  priority: undefined,
  tasks: [],
  mode: 'only',
  parameters: '',
}

/** Returns the parameters in lines of name=value, or the number of the line that is none. */
export function parametersIn(text: string): Record<string, string> | number {
  const found: Record<string, string> = {}
  for (const [index, line] of text.split('\n').entries()) {
    if (!line.trim()) continue
    const at = line.indexOf('=')
    if (at < 1) return index + 1
    found[line.slice(0, at).trim()] = line.slice(at + 1)
  }
  return found
}

/** Returns the request; what is left at its default is left to the server. */
export function requestOf(project: string, workflow: string, values: PlanValues, parameters: Record<string, string>): BackfillIn {
  const { from, to, by, only, reprocess, parallel, order, onFailure, downstream, priority, tasks, mode } = values
  return {
    project,
    workflow,
    from,
    to,
    reprocess,
    parallel,
    order,
    downstream,
    ...(by === 'auto' ? {} : { by }),
    ...(only === 'all' ? {} : { only }),
    ...(onFailure === 'auto' ? {} : { on_failure: onFailure }),
    ...(priority ? { priority } : {}),
    ...(tasks.length ? { tasks, mode } : {}),
    ...(Object.keys(parameters).length ? { parameters } : {}),
  } as BackfillIn
}
