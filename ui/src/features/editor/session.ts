/** What is being edited: one text that all views show, where tasks stand and their groups, and the history of it all. */
import { useSyncExternalStore } from 'react'
import { begun, changed, moved, redone, undone, type History } from '@/definition/history'
import type { Groups } from '@/graph/groups'
import { arranged, placed, type Arrangement, type Places } from '@/graph/places'
import { parse, type Parsed } from '@/definition/parse'
import type { TextKey } from '@/shared/i18n'

export interface SessionState {
  text: string
  /** What the text says, as far as it has been read. */
  parsed: Parsed
  /** The last text that could be read: what pictures show while this one cannot. */
  good: Parsed
  places: Places
  groups: Groups
  canUndo: TextKey | null
  canRedo: TextKey | null
  /** Null: it may be changed. */
  refusal: string | null
}

const SLOW_MS = 25 // texts that take longer are read when typing pauses
const PAUSE_MS = 300

/** Where the places and the groups of tasks come from, and go to. */
export interface LayoutStore {
  readonly arrangement: Arrangement
  save(arrangement: Arrangement): void
}

export class Session {
  readonly project: string
  readonly name: string
  readonly #layout: LayoutStore
  readonly #listeners = new Set<() => void>()
  readonly #onText: (text: string) => void
  #history: History
  #parsed: Parsed
  #good: Parsed
  #state: SessionState
  #refusal: string | null
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(project: string, name: string, text: string, refusal: string | null, layout: LayoutStore, onText: (text: string) => void) {
    this.project = project
    this.name = name
    this.#layout = layout
    this.#onText = onText
    this.#refusal = refusal
    this.#parsed = parse(text)
    this.#good = this.#parsed.mistakes.length ? parse('') : this.#parsed
    this.#history = begun(text, layout.arrangement)
    this.#state = this.#made()
  }

  get state(): SessionState {
    return this.#state
  }

  /** Changes the text by what it says. Throws NotPatchable; a text with mistakes is left alone. */
  change(what: TextKey, how: (parsed: Parsed) => Parsed, options: { group?: string; places?: (shown: Places) => Places; groups?: (groups: Groups) => Groups } = {}): boolean {
    if (this.#refusal !== null) return false
    this.#read()
    if (this.#parsed.mistakes.length) return false
    const after = how(this.#parsed)
    // From the first change by hand on tasks stay where they are seen.
    const shown = this.#state.places
    const places = options.places ? options.places(shown) : shown
    this.#parsed = after
    const { groups } = this.#history.now
    this.#put({ text: after.text, places: onlyOf(places, after), groups: options.groups?.(groups) ?? groups, what }, options.group ?? '')
    return true
  }

  /** Replaces the text, as it is typed. */
  type(text: string): void {
    if (this.#refusal === null) this.#put({ text, what: 'edit.typing' }, 'typing')
  }

  /** Replaces the text as one step. */
  replace(what: TextKey, text: string): void {
    this.#put({ text, what }, '')
  }

  place(what: TextKey, how: (shown: Places) => Places): void {
    if (this.#refusal === null) this.#put({ places: how(this.#state.places), what }, '')
  }

  /** Changes the groups. Tasks stay where they are seen. */
  group(what: TextKey, how: (groups: Groups) => Groups): void {
    if (this.#refusal === null) this.#put({ places: this.#state.places, groups: how(this.#history.now.groups), what }, '')
  }

  arrange(): void {
    this.place('edit.arrange', () => arranged(this.#good.tasks, this.#history.now.groups))
  }

  /** Tasks stand elsewhere, because somebody else has moved or grouped them: nothing that can be undone here. */
  takeLayout(arrangement: Arrangement): void {
    this.#history = moved(this.#history, arrangement)
    this.#tell()
  }

  undo(): void {
    if (this.#refusal === null) this.#go(undone(this.#history))
  }

  redo(): void {
    if (this.#refusal === null) this.#go(redone(this.#history))
  }

  refuse(refusal: string | null): void {
    if (refusal === this.#refusal) return
    this.#refusal = refusal
    this.#tell()
  }

  readonly subscribe = (tell: () => void): (() => void) => {
    this.#listeners.add(tell)
    return () => this.#listeners.delete(tell)
  }

  #put(next: { text?: string; places?: Places; groups?: Groups; what: string }, group: string): void {
    this.#go(changed(this.#history, next, Date.now(), group))
  }

  #go(history: History): void {
    const before = this.#history
    if (history === before) return
    this.#history = history
    const { text, places, groups } = history.now
    if (places !== before.now.places || groups !== before.now.groups) this.#layout.save({ places, groups })
    if (text !== before.now.text) this.#onText(text)
    if (this.#parsed.text !== text) {
      clearTimeout(this.#timer)
      if (this.#parsed.milliseconds < SLOW_MS || this.#parsed.mistakes.length) this.#read()
      else this.#timer = setTimeout(() => (this.#read(), this.#tell()), PAUSE_MS)
    } else if (!this.#parsed.mistakes.length) {
      this.#good = this.#parsed
    }
    this.#tell()
  }

  #read(): void {
    clearTimeout(this.#timer)
    if (this.#parsed.text !== this.#history.now.text) this.#parsed = parse(this.#history.now.text)
    if (!this.#parsed.mistakes.length) this.#good = this.#parsed
  }

  #made(): SessionState {
    const { past, now, future } = this.#history
    return {
      text: now.text,
      parsed: this.#parsed,
      good: this.#good,
      places: placed(this.#good.tasks, now.places, now.groups),
      groups: now.groups,
      canUndo: past.length ? (now.what as TextKey) : null,
      canRedo: future[0] ? (future[0].what as TextKey) : null,
      refusal: this.#refusal,
    }
  }

  #tell(): void {
    this.#state = this.#made()
    for (const tell of this.#listeners) tell()
  }
}

function onlyOf(places: Places, parsed: Parsed): Places {
  const names = new Set(parsed.tasks.map((task) => task.name))
  return Object.fromEntries(Object.entries(places).filter(([name]) => names.has(name)))
}

export function useSession(session: Session): SessionState {
  return useSyncExternalStore(session.subscribe, () => session.state)
}
