/** States as they are shown: the glyph carries the meaning, the colour repeats it. */
export interface Look {
  glyph: string
  tone: Tone
}

export type Tone =
  | 'waiting' | 'retry' | 'blocked' | 'queued' | 'running' | 'paused'
  | 'succeeded' | 'failed' | 'killed' | 'lost' | 'skipped'

const LOOKS: Record<string, Look> = {
  WAITING: { glyph: '○', tone: 'waiting' },
  DELAYED: { glyph: '◔', tone: 'waiting' },
  RESCHEDULED: { glyph: '◔', tone: 'waiting' },
  UP_FOR_RETRY: { glyph: '↻', tone: 'retry' },
  BLOCKED: { glyph: '▥', tone: 'blocked' },
  QUEUED: { glyph: '≡', tone: 'queued' },
  CLAIMED: { glyph: '◇', tone: 'queued' },
  PENDING: { glyph: '≡', tone: 'queued' },
  RUNNING: { glyph: '▶', tone: 'running' },
  PAUSING: { glyph: '◌', tone: 'paused' },
  PAUSED: { glyph: '‖', tone: 'paused' },
  STOPPING: { glyph: '◌', tone: 'killed' },
  STOPPED: { glyph: '■', tone: 'killed' },
  SUCCEEDED: { glyph: '✓', tone: 'succeeded' },
  FAILED: { glyph: '✕', tone: 'failed' },
  KILLED: { glyph: '■', tone: 'killed' },
  LOST: { glyph: '⚡', tone: 'lost' },
  SKIPPED: { glyph: '⤼', tone: 'skipped' },
  // Dates of backfills, and commands.
  STARTED: { glyph: '▶', tone: 'running' },
  CANCELLING: { glyph: '◌', tone: 'killed' },
  CANCELLED: { glyph: '■', tone: 'killed' },
  DONE: { glyph: '✓', tone: 'succeeded' },
  REFUSED: { glyph: '✕', tone: 'failed' },
}

/** Returns the look of a state of a run or an attempt. */
export function lookOf(state: string): Look {
  return LOOKS[state] ?? { glyph: '·', tone: 'waiting' }
}

export const RUN_STATES = [
  'QUEUED', 'RUNNING', 'PAUSING', 'PAUSED', 'STOPPING', 'STOPPED', 'FAILED', 'SUCCEEDED',
] as const
const ENDED = new Set(['STOPPED', 'FAILED', 'SUCCEEDED'])
const TASK_ENDED = new Set(['SUCCEEDED', 'FAILED', 'KILLED', 'LOST', 'SKIPPED', 'RESCHEDULED'])

export function hasEnded(state: string): boolean {
  return ENDED.has(state)
}

export function taskHasEnded(state: string): boolean {
  return TASK_ENDED.has(state)
}
