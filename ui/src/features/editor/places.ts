/**
 * Keeps where tasks stand and their groups: in this browser at once, in the workflow's layout a moment later.
 *
 * A workflow has one layout for everybody. Where somebody else has changed it meanwhile, theirs and
 * ours are joined, task by task and group by group. What is not published yet has no layout; what
 * it would say stays in this browser until it has.
 */
import { ApiProblem, type Tagged } from '@/api/client'
import type { Layout } from '@/api/types'
import { groupsFrom, isSameGroup, joinedGroups, NO_GROUPS, storedFrom, type Group } from '@/graph/groups'
import { joined, type Arrangement, type Places } from '@/graph/places'
import { loadLayout, saveLayout } from './queries'

/** What the API has. `load` answers null for a workflow that is not published. */
export interface Remote {
  load(): Promise<Tagged<Layout> | null>
  save(layout: Pick<Layout, 'places' | 'groups' | 'folded'>, tag: string): Promise<Tagged<Layout>>
}

/** What was changed in this browser and the API does not have yet; a group that is null was taken away. */
interface Unsaved {
  places: Places
  groups: Readonly<Record<string, Group | null>>
}

const SAVE_MS = 1000
const RETRY_MS = 5000
const MOST = 10_000 // tasks of a layout
const NOTHING: Arrangement = { places: {}, groups: NO_GROUPS }

const keyOf = (project: string, name: string): string => `shoal.layout.${project}/${name}`

/** Returns the layout of a workflow, as this browser and the API know it. Throws ApiProblem. */
export async function openPlaces(project: string, name: string, mayEdit: boolean): Promise<KeptPlaces> {
  const remote: Remote = { load: () => loadLayout(project, name), save: (layout, tag) => saveLayout(project, name, layout, tag) }
  return new KeptPlaces(keyOf(project, name), remote, await remote.load(), mayEdit)
}

export class KeptPlaces {
  /** Told of what somebody else has changed. */
  onOthers: (arrangement: Arrangement) => void = () => undefined
  readonly #key: string
  readonly #remote: Remote
  #known: Tagged<Layout> | null
  #own: Arrangement
  #timer: ReturnType<typeof setTimeout> | undefined
  #sending: Promise<void> = Promise.resolve()

  constructor(key: string, remote: Remote, known: Tagged<Layout> | null, mayEdit: boolean) {
    this.#key = key
    this.#remote = remote
    this.#known = known
    const { places, groups } = mayEdit ? readLocal(key) : { places: {}, groups: {} }
    const stored = arrangementOf(known)
    const kept = Object.entries({ ...stored.groups, ...groups }).flatMap(([name, group]): [string, Group][] => (group ? [[name, group]] : []))
    this.#own = { places: { ...stored.places, ...places }, groups: joinedGroups(stored.groups, Object.fromEntries(kept), stored.groups) }
    if (known && this.#isChanged()) this.#soon()
  }

  get arrangement(): Arrangement {
    return this.#own
  }

  /** Tasks were moved or grouped. */
  save(arrangement: Arrangement): void {
    this.#own = arrangement
    this.#keep()
    if (this.#known) this.#soon()
  }

  /** The workflow has been published: from now on it has a layout. */
  async published(): Promise<void> {
    if (this.#known) return
    try {
      this.#known = await this.#remote.load()
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      return // all stays in this browser, until the workflow is opened again
    }
    await this.flush()
  }

  /** Sends what was not sent yet, and returns when that is done, or known not to be. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#sending = this.#sending.then(() => this.#send())
    return this.#sending
  }

  #soon(ms = SAVE_MS): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.flush(), ms)
  }

  async #send(): Promise<void> {
    const known = this.#known
    if (!known || !this.#isChanged()) return
    const sent = this.#own
    try {
      // Tasks that only other drafts or older versions have keep their places, as long as there is room.
      const all = { ...known.value.places, ...sent.places }
      const places = Object.keys(all).length > MOST ? sent.places : all
      this.#known = await this.#remote.save({ places, ...storedFrom(sent.groups) }, known.etag)
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      if (error.status === 412 && error.tag !== null && isLayout(error.current)) this.#meet({ value: error.current, etag: error.tag })
      else if (error.status === 0 || error.status >= 500) this.#soon(RETRY_MS)
      // Else nobody may save them any more; they stay in this browser.
      return
    }
    this.#keep()
  }

  /** Somebody else has changed the layout since it was seen. */
  #meet(current: Tagged<Layout>): void {
    const [base, theirs] = [arrangementOf(this.#known), arrangementOf(current)]
    this.#own = { places: joined(base.places, this.#own.places, theirs.places), groups: joinedGroups(base.groups, this.#own.groups, theirs.groups) }
    this.#known = current
    this.#keep()
    this.onOthers(this.#own)
    this.#soon(0)
  }

  #unsaved(): Unsaved {
    const base = arrangementOf(this.#known)
    const names = Object.keys({ ...base.groups, ...this.#own.groups }).filter((name) => !isSameGroup(base.groups[name], this.#own.groups[name]))
    return { places: joined(base.places, this.#own.places, {}), groups: Object.fromEntries(names.map((name) => [name, this.#own.groups[name] ?? null])) }
  }

  #isChanged(): boolean {
    const { places, groups } = this.#unsaved()
    return Object.keys(places).length > 0 || Object.keys(groups).length > 0
  }

  #keep(): void {
    try {
      if (this.#isChanged()) localStorage.setItem(this.#key, JSON.stringify(this.#unsaved()))
      else localStorage.removeItem(this.#key)
    } catch {
      // The browser has no room left: what the API does not get in time is arranged anew.
    }
  }
}

function arrangementOf(layout: Tagged<Layout> | null): Arrangement {
  return layout ? { places: layout.value.places, groups: groupsFrom(layout.value) } : NOTHING
}

function readLocal(key: string): Unsaved {
  try {
    const found = JSON.parse(localStorage.getItem(key) ?? '{}') as Partial<Unsaved> | null
    return { places: found?.places ?? {}, groups: found?.groups ?? {} }
  } catch {
    return { places: {}, groups: {} }
  }
}

function isLayout(value: unknown): value is Layout {
  return typeof value === 'object' && value !== null && 'places' in value
}
