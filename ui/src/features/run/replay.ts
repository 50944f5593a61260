/** What a run was at a moment: the states that its events had told of by then. Pure. */
import type { ChangeEvent } from '@/live/stream'

export interface Moment {
  run: string | null
  tasks: ReadonlyMap<string, string>
}

/** Returns the states after the first `count` events. What no event has told of is not in it. */
export function momentAt(events: readonly ChangeEvent[], count: number): Moment {
  const tasks = new Map<string, string>()
  const attempts = new Map<string, number>()
  let run: string | null = null
  for (const { kind, data } of events.slice(0, count)) {
    if (typeof data.state !== 'string') continue
    if (kind === 'instance.state') run = data.state
    if (!kind.startsWith('task.') || typeof data.task !== 'string') continue
    const attempt = Number(data.attempt) || 1
    // An older attempt may tell of its end when a newer one has begun.
    if (attempt < (attempts.get(data.task) ?? 0)) continue
    attempts.set(data.task, attempt)
    tasks.set(data.task, data.state)
  }
  return { run, tasks }
}
