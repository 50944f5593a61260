/** Searches a whole log at the server, part after part, wherever the log is. */
import { useCallback, useEffect, useRef, useState } from 'react'
import { api, take } from '@/api/client'
import type { LogHit } from '@/api/types'

const MOST_HITS = 1000
const OF_ONE = 200 // hits that one request asks for

export interface Wanted {
  text: string
  regex: boolean
  ignoreCase: boolean
}

export interface Search {
  hits: readonly LogHit[]
  /** Bytes that were looked at, and all there are; null: nothing is being searched. */
  at: { done: number; size: number } | null
  error: Error | null
  isDone: boolean
  search: (wanted: Wanted) => void
  clear: () => void
}

export function useSearch(id: number): Search {
  const [hits, setHits] = useState<readonly LogHit[]>([])
  const [at, setAt] = useState<Search['at']>(null)
  const [error, setError] = useState<Error | null>(null)
  const [isDone, setDone] = useState(false)
  const round = useRef(0)
  const clear = useCallback(() => {
    round.current += 1
    setHits([])
    setAt(null)
    setError(null)
    setDone(false)
  }, [])
  useEffect(() => clear, [id, clear])
  const search = useCallback(
    ({ text, regex, ignoreCase }: Wanted) => {
      clear()
      const own = round.current
      const run = async (): Promise<void> => {
        let offset = 0
        let found = 0
        for (;;) {
          const part = await take(
            api.GET('/api/v1/task-instances/{task_instance_id}/log/search', {
              params: { path: { task_instance_id: id }, query: { ...(regex ? { regex: text } : { text }), ignore_case: ignoreCase, offset, limit: OF_ONE } },
            }),
          )
          if (round.current !== own) return
          found += part.hits.length
          setHits((old) => [...old, ...part.hits].slice(0, MOST_HITS))
          if (part.next_offset === null || part.next_offset <= offset || found >= MOST_HITS) break
          offset = part.next_offset
          setAt({ done: offset, size: part.size })
        }
        setAt(null)
        setDone(true)
      }
      setAt({ done: 0, size: 0 })
      run().catch((thrown: Error) => {
        if (round.current !== own) return
        setAt(null)
        setError(thrown)
      })
    },
    [id, clear],
  )
  return { hits, at, error, isDone, search, clear }
}
