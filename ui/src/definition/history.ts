/** One history of everything an editor changes: the text, where tasks stand, and their groups. Pure. */
import type { Groups } from '@/graph/groups'
import type { Arrangement, Places } from '@/graph/places'

/** What is undone and done again as one. */
export interface Snapshot {
  text: string
  places: Places
  groups: Groups
  /** What was changed, for those who undo it: the key of a text. */
  what: string
}

export interface History {
  past: readonly Snapshot[]
  now: Snapshot
  future: readonly Snapshot[]
  /** When, and as part of what, the newest change was made; strokes that belong together are one step. */
  at: number
  group: string
}

const TOGETHER_MS = 800
const MOST = 300
const MOST_CHARACTERS = 30_000_000 // of all texts: long ones are kept less often

export function begun(text: string, { places, groups }: Arrangement): History {
  return { past: [], now: { text, places, groups, what: '' }, future: [], at: 0, group: '' }
}

/** Returns the history with a change. Changes of one `group` within a moment are one step. */
export function changed(history: History, next: { text?: string; places?: Places; groups?: Groups; what: string }, at: number, group = ''): History {
  const { now, past } = history
  const text = next.text ?? now.text
  const places = next.places ?? now.places
  const groups = next.groups ?? now.groups
  if (text === now.text && places === now.places && groups === now.groups) return history
  const isSame = group !== '' && group === history.group && at - history.at < TOGETHER_MS && past.length > 0
  const most = Math.max(20, Math.min(MOST, Math.floor(MOST_CHARACTERS / Math.max(1, text.length))))
  return { past: isSame ? past : [...past, now].slice(-most), now: { text, places, groups, what: next.what }, future: [], at, group }
}

/** Returns the history with tasks at other places or in other groups, which is not a step of it. */
export function moved(history: History, { places, groups }: Arrangement): History {
  return { ...history, now: { ...history.now, places, groups } }
}

export function undone(history: History): History {
  const last = history.past.at(-1)
  if (!last) return history
  return { past: history.past.slice(0, -1), now: last, future: [history.now, ...history.future], at: 0, group: '' }
}

export function redone(history: History): History {
  const [next, ...rest] = history.future
  if (!next) return history
  return { past: [...history.past, history.now], now: next, future: rest, at: 0, group: '' }
}
