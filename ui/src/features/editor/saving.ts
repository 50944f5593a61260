/**
 * Keeps what is typed: in this browser at once, as a draft of the API a moment later.
 *
 * A draft is saved upon the state that was seen. If it has changed meanwhile, in another window, or
 * if somebody has published, what the others did is merged in; where both changed the same, the
 * person decides, and until then nothing is sent.
 */
import { useSyncExternalStore } from 'react'
import { ApiProblem } from '@/api/client'
import type { Draft } from '@/api/types'
import { merge, type Conflict } from '@/definition/merge'
import { discardDraft, loadDraft, publishDraft, saveDraft, versionText } from './queries'

export type SavingState = 'published' | 'waiting' | 'saving' | 'saved' | 'offline' | 'refused' | 'conflict'

export interface Clash {
  /** With whom: the same draft in another window, or a version that somebody has published. */
  with: 'window' | 'version'
  version: number
  base: string
  mine: string
  theirs: string
  merged: string // ours, with all of theirs that did not clash
  conflicts: readonly Conflict[] // empty: one of the texts cannot be read, so it is all or nothing
  tag: string | null
}

export interface SavingInfo {
  state: SavingState
  at: number // of the last change of `state`, in milliseconds
  baseVersion: number
  hasDraft: boolean
  clash: Clash | null
  problem: string
}

interface Local {
  text: string
  savedText: string
  baseVersion: number
  tag: string | null
  at: number
}

export interface Opened {
  text: string
  savedText: string
  baseVersion: number
  tag: string | null
  /** What came from this browser, because it had not reached the API. */
  isRestored: boolean
  clash: Clash | null
}

const SAVE_MS = 1000
const RETRY_MS = 5000
const keyOf = (who: string, project: string, name: string): string => `shoal.draft.${who}.${project}/${name}`

/** Returns what a person finds when they open a workflow to edit it. `newest`: 0 if it is not published. */
export async function open(who: string, project: string, name: string, newest: number, starter: string): Promise<Opened> {
  const draft = await loadDraft(project, name)
  const published = draft ? '' : newest ? await versionText(project, name, newest) : starter
  const savedText = draft?.value.text ?? published
  const baseVersion = draft?.value.base_version ?? newest
  const tag = draft?.etag || null
  const plain: Opened = { text: savedText, savedText, baseVersion, tag, isRestored: false, clash: null }
  const local = readLocal(who, project, name)
  if (!local || local.text === savedText) return plain
  if (local.tag === tag && (draft !== null || local.baseVersion === newest)) return { ...plain, text: local.text, isRestored: true }
  // Both have gone on since: the draft elsewhere, and this browser without a network.
  const done = merge(local.savedText, local.text, savedText)
  if (done && !done.conflicts.length) return { ...plain, text: done.text, isRestored: true }
  const clash: Clash = { with: draft ? 'window' : 'version', version: baseVersion, base: local.savedText, mine: local.text, theirs: savedText, merged: done?.text ?? local.text, conflicts: done?.conflicts ?? [], tag }
  return { ...plain, text: local.text, isRestored: true, clash }
}

function readLocal(who: string, project: string, name: string): Local | null {
  try {
    return JSON.parse(localStorage.getItem(keyOf(who, project, name)) ?? 'null') as Local | null
  } catch {
    return null
  }
}

export class Saving {
  readonly #who: string
  readonly #project: string
  readonly #name: string
  readonly #listeners = new Set<() => void>()
  readonly #take: (text: string) => void
  #text: string
  #savedText: string
  #tag: string | null
  #info: SavingInfo
  #timer: ReturnType<typeof setTimeout> | undefined
  #sending: Promise<void> | null = null

  constructor(who: string, project: string, name: string, opened: Opened, take: (text: string) => void) {
    this.#who = who
    this.#project = project
    this.#name = name
    this.#take = take
    this.#text = opened.text
    this.#savedText = opened.savedText
    this.#tag = opened.tag
    const state = opened.clash ? 'conflict' : opened.text !== opened.savedText ? 'waiting' : opened.tag ? 'saved' : 'published'
    this.#info = { state, at: Date.now(), baseVersion: opened.baseVersion, hasDraft: opened.tag !== null, clash: opened.clash, problem: '' }
    if (state === 'waiting') this.#soon()
  }

  get info(): SavingInfo {
    return this.#info
  }

  readonly subscribe = (tell: () => void): (() => void) => {
    this.#listeners.add(tell)
    return () => this.#listeners.delete(tell)
  }

  /** The text has changed. */
  changed(text: string): void {
    this.#text = text
    this.#keep()
    if (this.#info.state === 'conflict') return
    if (text === this.#savedText && this.#info.state !== 'saving') {
      clearTimeout(this.#timer)
      this.#set({ state: this.#tag ? 'saved' : 'published' })
      return
    }
    this.#set({ state: 'waiting' })
    this.#soon()
  }

  /** Saves at once, and returns when it is done, or known not to be. */
  async flush(): Promise<boolean> {
    clearTimeout(this.#timer)
    await this.#sending
    if (this.#info.state !== 'conflict' && (this.#text !== this.#savedText || this.#tag === null)) {
      this.#sending = this.#send()
      await this.#sending
    }
    return this.#info.state === 'saved'
  }

  /** Makes the draft the newest version. Returns its number; null: it could not be, which `info` tells. */
  async publish(): Promise<number | null> {
    if (!(await this.flush()) || this.#tag === null) return null
    try {
      const { value } = await publishDraft(this.#project, this.#name, this.#tag)
      this.#over(value.version, this.#text)
      return value.version
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.status !== 412) throw error
      const version = (error.current as { version?: number; base_version?: number } | null) ?? {}
      if (version.base_version !== undefined) await this.#meet(error)
      else await this.takeIn(version.version ?? 0)
      return null
    }
  }

  /** Takes in what a newer version has changed since the one that the draft began with. */
  async takeIn(version: number): Promise<readonly string[]> {
    const [base, theirs] = await Promise.all([this.#info.baseVersion, version].map((one) => versionText(this.#project, this.#name, one)))
    return this.#merge('version', version, base ?? '', theirs ?? '', this.#tag)
  }

  /** Ends a conflict with the text that the person has decided upon. */
  async decide(text: string): Promise<void> {
    const { clash } = this.#info
    if (!clash) return
    this.#savedText = clash.with === 'window' ? clash.theirs : this.#savedText
    this.#tag = clash.with === 'window' ? clash.tag : this.#tag
    this.#set({ state: 'waiting', clash: null, ...(clash.with === 'version' ? { baseVersion: clash.version } : {}) })
    this.#text = text
    this.#take(text)
    this.#sending = this.#send()
    await this.#sending
  }

  /** Deletes the draft; returns the text that is published. */
  async discard(newest: number, starter: string): Promise<void> {
    clearTimeout(this.#timer)
    await this.#sending
    if (this.#tag !== null) {
      await discardDraft(this.#project, this.#name, this.#tag).catch((error: unknown) => {
        if (!(error instanceof ApiProblem) || (error.status !== 404 && error.status !== 412)) throw error
      })
    }
    const text = newest ? await versionText(this.#project, this.#name, newest) : starter
    this.#over(newest, text)
    this.#take(text)
  }

  stop(): void {
    clearTimeout(this.#timer)
    if (this.#info.state === 'waiting') void this.#send() // the page is left
  }

  #over(version: number, text: string): void {
    this.#text = this.#savedText = text
    this.#tag = null
    localStorage.removeItem(keyOf(this.#who, this.#project, this.#name))
    this.#set({ state: 'published', baseVersion: version, hasDraft: false, clash: null, problem: '' })
  }

  #soon(ms = SAVE_MS): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#sending = (this.#sending ?? Promise.resolve()).then(() => this.#send())
    }, ms)
  }

  async #send(): Promise<void> {
    if (this.#info.state === 'conflict') return
    const text = this.#text
    this.#set({ state: 'saving' })
    try {
      const { etag } = await saveDraft(this.#project, this.#name, text, this.#info.baseVersion, this.#tag)
      this.#tag = etag
      this.#savedText = text
      this.#keep()
      this.#set({ state: this.#text === text ? 'saved' : 'waiting', hasDraft: true, problem: '' })
      if (this.#text !== text) this.#soon()
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      if (error.status === 412) await this.#meet(error)
      else if (error.status === 0 || error.status >= 500) {
        this.#set({ state: 'offline', problem: error.message })
        this.#soon(RETRY_MS)
      } else this.#set({ state: 'refused', problem: error.message || error.title })
    }
  }

  /** The draft is not as it was seen: it is open in another window, or was discarded there. */
  async #meet(error: ApiProblem): Promise<void> {
    const current = error.current as Draft | null
    if (!current || typeof current.text !== 'string') {
      this.#tag = null
      await this.#send()
      return
    }
    const tag = error.tag
    await this.#merge('window', current.newest_version, this.#savedText, current.text, tag, current.base_version)
  }

  async #merge(kind: Clash['with'], version: number, base: string, theirs: string, tag: string | null, newBase = version): Promise<readonly string[]> {
    const mine = this.#text
    const done = merge(base, mine, theirs)
    if (!done || done.conflicts.length) {
      this.#set({ state: 'conflict', clash: { with: kind, version, base, mine, theirs, merged: done?.text ?? mine, conflicts: done?.conflicts ?? [], tag } })
      return []
    }
    if (kind === 'window') this.#savedText = theirs
    this.#tag = tag
    this.#set({ state: 'waiting', baseVersion: newBase })
    this.#text = done.text
    if (done.text !== mine) this.#take(done.text)
    await this.#send()
    return done.taken
  }

  #keep(): void {
    const kept: Local = { text: this.#text, savedText: this.#savedText, baseVersion: this.#info.baseVersion, tag: this.#tag, at: Date.now() }
    try {
      localStorage.setItem(keyOf(this.#who, this.#project, this.#name), JSON.stringify(kept))
    } catch {
      // No room in this browser: the draft of the API is all there is, and is saved every second.
    }
  }

  #set(changes: Partial<SavingInfo>): void {
    this.#info = { ...this.#info, ...changes, at: Date.now() }
    for (const tell of this.#listeners) tell()
  }
}

export function useSaving(saving: Saving): SavingInfo {
  return useSyncExternalStore(saving.subscribe, () => saving.info)
}

