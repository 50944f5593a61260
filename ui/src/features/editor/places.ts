/**
 * Keeps where tasks stand: in this browser at once, in the workflow's layout a moment later.
 *
 * A workflow has one layout for everybody. Where somebody else has moved tasks meanwhile, theirs
 * and ours are joined task by task. What is not published yet has no layout; its places stay in
 * this browser until it has.
 */
import { ApiProblem, type Tagged } from '@/api/client'
import type { Layout } from '@/api/types'
import { joined, type Places } from '@/graph/places'
import { loadLayout, saveLayout } from './queries'

/** What the API has. `load` answers null for a workflow that is not published. */
export interface Remote {
  load(): Promise<Tagged<Layout> | null>
  save(layout: Pick<Layout, 'places' | 'groups' | 'folded'>, tag: string): Promise<Tagged<Layout>>
}

const SAVE_MS = 1000
const RETRY_MS = 5000
const MOST = 10_000 // tasks of a layout

const keyOf = (project: string, name: string): string => `shoal.layout.${project}/${name}`

/** Returns the places of a workflow's tasks, as this browser and the API know them. Throws ApiProblem. */
export async function openPlaces(project: string, name: string, mayEdit: boolean): Promise<KeptPlaces> {
  const remote: Remote = { load: () => loadLayout(project, name), save: (layout, tag) => saveLayout(project, name, layout, tag) }
  return new KeptPlaces(keyOf(project, name), remote, await remote.load(), mayEdit)
}

export class KeptPlaces {
  /** Told of places that somebody else has changed. */
  onOthers: (places: Places) => void = () => undefined
  readonly #key: string
  readonly #remote: Remote
  #known: Tagged<Layout> | null
  #places: Places
  #timer: ReturnType<typeof setTimeout> | undefined
  #sending: Promise<void> = Promise.resolve()

  constructor(key: string, remote: Remote, known: Tagged<Layout> | null, mayEdit: boolean) {
    this.#key = key
    this.#remote = remote
    this.#known = known
    const unsaved = mayEdit ? readLocal(key) : {}
    this.#places = { ...known?.value.places, ...unsaved }
    if (known && Object.keys(unsaved).length) this.#soon()
  }

  get places(): Places {
    return this.#places
  }

  /** Tasks were moved. */
  save(places: Places): void {
    this.#places = places
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
      return // the places stay in this browser, until the workflow is opened again
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
    if (!known || !Object.keys(this.#moved()).length) return
    const sent = this.#places
    try {
      // Tasks that only other drafts or older versions have keep their places, as long as there is room.
      const all = { ...known.value.places, ...sent }
      const places = Object.keys(all).length > MOST ? sent : all
      this.#known = await this.#remote.save({ places, groups: known.value.groups, folded: known.value.folded }, known.etag)
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error
      if (error.status === 412 && error.tag !== null && isLayout(error.current)) this.#meet({ value: error.current, etag: error.tag })
      else if (error.status === 0 || error.status >= 500) this.#soon(RETRY_MS)
      // Else nobody may save them any more; they stay in this browser.
      return
    }
    this.#keep()
  }

  /** Somebody else has moved tasks since the layout was seen. */
  #meet(current: Tagged<Layout>): void {
    const places = joined(this.#known?.value.places ?? {}, this.#places, current.value.places)
    this.#known = current
    this.#places = places
    this.#keep()
    this.onOthers(places)
    this.#soon(0)
  }

  #moved(): Places {
    return joined(this.#known?.value.places ?? {}, this.#places, {})
  }

  #keep(): void {
    try {
      const moved = this.#moved()
      if (Object.keys(moved).length) localStorage.setItem(this.#key, JSON.stringify(moved))
      else localStorage.removeItem(this.#key)
    } catch {
      // The browser has no room left: what the API does not get in time is arranged anew.
    }
  }
}

function readLocal(key: string): Places {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? '{}')
    return typeof found === 'object' && found !== null ? (found as Places) : {}
  } catch {
    return {}
  }
}

function isLayout(value: unknown): value is Layout {
  return typeof value === 'object' && value !== null && 'places' in value
}
