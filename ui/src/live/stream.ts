/** The one event stream of a browser: connects, resumes, and hands on batches. */
import { readEvents, type ServerEvent } from './sse'

export interface ChangeEvent {
  id: number
  at: string
  kind: string
  project: string
  instance_id: number | null
  task_instance_id: number | null
  data: Record<string, unknown>
}

export type LiveState = 'connecting' | 'live' | 'stale' | 'signed-out'
export interface Status {
  type: 'status'
  state: LiveState
  since: number // ms since 1970: when this state began
}
export interface Batch {
  type: 'batch'
  events: ChangeEvent[]
}
export type Message = Status | Batch

const BATCH_MS = 250
const SILENCE_MS = 40_000 // the server says something every 15 s
const PAUSES_MS = [500, 1000, 2000, 5000, 10_000]

/** Runs until the program ends. Messages go to `send`. */
export class Stream {
  status: Status = { type: 'status', state: 'connecting', since: Date.now() }
  #last: string | null = null
  #waiting: ChangeEvent[] = []
  #abort: AbortController | null = null
  #failures = 0
  #heard = 0
  #retry: ReturnType<typeof setTimeout> | undefined
  readonly #send: (message: Message) => void

  constructor(send: (message: Message) => void) {
    this.#send = send
  }

  start(): void {
    void this.#connect()
  }

  /** Something suggests that it may work now: the network is back, the page is seen again. */
  wake(): void {
    if (this.status.state !== 'live') this.#again(0)
    else if (Date.now() - this.#heard > SILENCE_MS) this.#abort?.abort()
  }

  /** The network is gone, it is said: what is not so is connected again at once. */
  cut(): void {
    this.#abort?.abort()
  }

  /** Somebody else has signed in: forget what was. */
  restart(): void {
    this.#last = null
    this.#abort?.abort()
    this.#again(0)
  }

  async #connect(): Promise<void> {
    const abort = (this.#abort = new AbortController())
    const watchdog = setInterval(() => {
      if (Date.now() - this.#heard > SILENCE_MS) abort.abort()
    }, 5000)
    this.#heard = Date.now()
    let signedOut = false
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' }
      if (this.#last !== null) headers['Last-Event-ID'] = this.#last
      const response = await fetch('/api/v1/events', { headers, signal: abort.signal })
      signedOut = response.status === 401
      if (!response.ok) throw new Error(String(response.status))
      this.#failures = 0
      this.#say('live')
      await readEvents(response, (events) => {
        this.#heard = Date.now()
        this.#take(events)
      })
    } catch {
      this.#failures += 1 // whatever it was, the pause below is the answer
    } finally {
      clearInterval(watchdog)
    }
    if (this.#abort !== abort) return // restarted meanwhile
    this.#say(signedOut ? 'signed-out' : 'stale')
    if (!signedOut) this.#again(PAUSES_MS[Math.min(this.#failures, PAUSES_MS.length - 1)] ?? 0)
  }

  #again(pauseMs: number): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.#connect(), pauseMs)
  }

  #say(state: LiveState): void {
    if (state === this.status.state) return
    this.status = { type: 'status', state, since: Date.now() }
    this.#send(this.status)
  }

  #take(events: ServerEvent[]): void {
    for (const event of events) {
      if (event.id !== null) this.#last = event.id
      if (this.#waiting.length === 0) setTimeout(() => this.#flush(), BATCH_MS)
      this.#waiting.push(JSON.parse(event.data) as ChangeEvent)
    }
  }

  #flush(): void {
    const events = this.#waiting
    this.#waiting = []
    if (events.length) this.#send({ type: 'batch', events })
  }
}
