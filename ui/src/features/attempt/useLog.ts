/** Loads parts of a log as they are needed, and follows its end. */
import { useCallback, useEffect, useRef, useState } from 'react'
import { ApiProblem } from '@/api/client'
import { LOG_BYTES, readLog } from '@/entities/queries'
import { readEvents } from '@/live/sse'
import { EMPTY, endOf, startOf, withPart, type LogWindow } from './window'

export interface Log {
  log: LogWindow
  error: Error | null
  isLoading: boolean
  earlier: () => void
  later: () => void
  jump: (byte: number) => void
}

const bytes = new TextEncoder()

/** `byte`: where to begin; null: at the end. `follow`: add what is written, as it is written. */
export function useLog(id: number, byte: number | null, follow: boolean): Log {
  const [log, setLog] = useState<LogWindow>(EMPTY)
  const [error, setError] = useState<Error | null>(null)
  const [isLoading, setLoading] = useState(true)
  const [isThere, setThere] = useState(false)
  const busy = useRef(false)
  const next = useRef<number | null>(null)
  const again = useRef<(offset: number) => Promise<void>>(() => Promise.resolve())
  const current = useRef(log)
  current.current = log

  const load = useCallback(
    async (offset: number, isNew = false, limit = LOG_BYTES): Promise<void> => {
      if (busy.current) {
        if (isNew) next.current = offset // a jump is not lost because something else is being read
        return
      }
      busy.current = true
      setLoading(true)
      try {
        const part = await readLog(id, offset, limit)
        const { data, next_offset, size, finished } = part
        setError(null)
        setThere(true)
        setLog((old) => withPart(isNew ? EMPTY : old, { start: part.offset, end: next_offset, text: data }, size, finished))
      } catch (thrown) {
        setError(thrown as Error)
      } finally {
        busy.current = false
        setLoading(false)
        const to = next.current
        next.current = null
        if (to !== null) void again.current(to)
      }
    },
    [id],
  )
  again.current = (offset) => load(offset, true)
  useEffect(() => {
    setLog(EMPTY)
    setThere(false)
    busy.current = false
    void load(byte ?? -LOG_BYTES, true)
    // The place to begin counts once; later moves are jumps.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [id, load])

  const isAtEnd = isThere && endOf(log) >= log.size
  useEffect(() => {
    if (!follow || !isAtEnd || current.current.finished) return
    const abort = new AbortController()
    void followLog(id, endOf(current.current), abort.signal, (start, text, end) =>
      setLog((old) => withPart(old, { start, end, text }, end, false)),
    ).then((ended) => {
      if (ended) setLog((old) => ({ ...old, finished: true }))
    })
    return () => abort.abort()
  }, [id, follow, isAtEnd])

  return {
    log,
    error,
    isLoading,
    earlier: () => {
      const start = startOf(current.current)
      const from = Math.max(0, start - LOG_BYTES)
      if (start > 0) void load(from, false, start - from)
    },
    later: () => {
      const end = endOf(current.current)
      if (end < current.current.size && !follow) void load(end)
    },
    jump: (to) => void load(to, true),
  }
}

/** Calls `take` with what is written until the log ends (true), or the stream does (false). */
async function followLog(
  id: number,
  offset: number,
  signal: AbortSignal,
  take: (start: number, text: string, end: number) => void,
): Promise<boolean> {
  let at = offset
  while (!signal.aborted) {
    let ended = false
    try {
      const response = await fetch(`/api/v1/task-instances/${id}/log/follow?offset=${at}`, { signal })
      if (!response.ok) throw new ApiProblem(response.status, {})
      await readEvents(response, (events) => {
        for (const event of events) {
          if (event.event === 'end') ended = true
          if (event.event !== 'log') continue
          const { offset: start, data } = JSON.parse(event.data) as { offset: number; data: string }
          const end = event.id === null ? start + bytes.encode(data).length : Number(event.id)
          take(start, data, end)
          at = end
        }
      })
    } catch {
      if (signal.aborted) return false
    }
    if (ended) return true
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
  return false
}
