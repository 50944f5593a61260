/** The page's end of the stream: patches what is cached, refetches what is shown, tells the state. */
import type { QueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import type { Instance, InstanceDetail } from '@/api/types'
import { changesOf, patched, type Changes } from './apply'
import { Stream, type ChangeEvent, type Message, type Status } from './stream'

const REFETCH_MS = 1000 // one thing is not fetched more often, however much happens

let status: Status = { type: 'status', state: 'connecting', since: Date.now() }
let post: (word: string) => void = () => undefined
const listeners = new Set<() => void>()
const taps = new Set<(events: readonly ChangeEvent[]) => void>()

/** Connects this page. Call once. */
export function startLive(queries: QueryClient): void {
  const refetch = new Refetching(queries)
  const take = (message: Message): void => {
    if (message.type === 'status') {
      const isBack = message.state === 'live' && status.state !== 'live'
      status = message
      if (isBack) void queries.invalidateQueries() // what happened before it was connected
      for (const tell of listeners) tell()
      return
    }
    const changes = changesOf(message.events)
    apply(queries, changes)
    refetch.of(changes)
    for (const tap of taps) tap(message.events)
  }
  if (typeof SharedWorker === 'undefined') {
    const stream = new Stream(take)
    post = (word) => (word === 'restart' ? stream.restart() : word === 'cut' ? stream.cut() : stream.wake())
    stream.start()
  } else {
    const worker = new SharedWorker(new URL('./stream.worker.ts', import.meta.url), {
      type: 'module',
      name: 'shoal-events',
    })
    worker.port.onmessage = (event: MessageEvent<Message>) => take(event.data)
    post = (word) => worker.port.postMessage(word)
    addEventListener('pagehide', () => post('bye'))
  }
  addEventListener('online', () => post('wake'))
  addEventListener('offline', () => post('cut'))
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') post('wake')
  })
}

/** Somebody has signed in or out. */
export function restartLive(): void {
  post('restart')
}

/** Returns whether what is shown is up to date, and since when not. */
export function useLive(): Status {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell)
      return () => listeners.delete(tell)
    },
    () => status,
  )
}

/** Calls `take` with the events as they come. Returns how to stop that. */
export function tapEvents(take: (events: readonly ChangeEvent[]) => void): () => void {
  taps.add(take)
  return () => taps.delete(take)
}

function apply(queries: QueryClient, changes: Changes): void {
  for (const id of changes.staleInstances) {
    queries.setQueriesData<InstanceDetail>({ queryKey: ['instance', id] }, (old) =>
      old && 'state' in old ? patched(old, changes) : old,
    )
  }
  if (!changes.instances.size) return
  queries.setQueriesData<{ items: Instance[] }>({ queryKey: ['instances'] }, (old) =>
    old && 'items' in old
      ? { ...old, items: old.items.map((item) => patched(item, changes)) }
      : old,
  )
}

/** Refetches what is on the screen, each thing at most once in a while. */
class Refetching {
  readonly #queries: QueryClient
  readonly #due = new Map<string, readonly unknown[]>()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(queries: QueryClient) {
    this.#queries = queries
  }

  of(changes: Changes): void {
    for (const kind of changes.stale) this.#due.set(kind, kind.split('/'))
    for (const id of changes.staleInstances) {
      for (const kind of ['instance', 'why']) this.#due.set(`${kind}:${id}`, [kind, id])
    }
    for (const id of changes.tasks.keys()) this.#due.set(`task:${id}`, ['task', id])
    this.#timer ??= setTimeout(() => this.#fetch(), REFETCH_MS)
  }

  #fetch(): void {
    this.#timer = undefined
    const due = [...this.#due.values()]
    this.#due.clear()
    for (const queryKey of due) void this.#queries.invalidateQueries({ queryKey })
  }
}
