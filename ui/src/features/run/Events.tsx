/** What has happened in a run: replayed from the event stream once, then live. */
import { useEffect, useState } from 'react'
import { StateMark } from '@/entities/marks'
import { readEvents } from '@/live/sse'
import { tapEvents } from '@/live/live'
import type { ChangeEvent } from '@/live/stream'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading } from '@/shared/ui/parts'

const QUIET_MS = 600 // without a missed event: all have come

export function Events({ run, zone }: { run: number; zone: string }) {
  const t = useT()
  const { events, isDone } = useHistory(run)
  const columns: Column<ChangeEvent>[] = [
    { key: 'at', title: t('run.event.at'), width: 'minmax(190px, 230px)', render: (event) => <Time at={event.at} zone={zone} /> },
    { key: 'who', title: t('run.event.who'), width: 'minmax(120px, 1fr)', render: (event) => <span className="mono cut">{subject(event)}</span> },
    { key: 'what', title: t('run.event.what'), width: 'minmax(120px, 150px)', render: (event) => (typeof event.data.state === 'string' ? <StateMark state={event.data.state} /> : <span className="dim">{event.kind}</span>) },
    { key: 'why', title: t('common.reason'), width: 'minmax(120px, 2fr)', hide: 'narrow', render: (event) => <span className="cut dim">{[event.data.reason, event.data.worker].filter((part) => typeof part === 'string').join(' · ')}</span> },
  ]
  if (!events.length) return isDone ? <Empty title={t('run.noEvents')} /> : <Loading />
  return <DataTable label={t('run.events')} rows={events} columns={columns} rowKey={(event) => event.id} rowHeight={32} />
}

function subject(event: ChangeEvent): string {
  const { task, attempt } = event.data
  return typeof task === 'string' ? `${task}${Number(attempt) > 1 ? ` #${Number(attempt)}` : ''}` : `run ${event.instance_id ?? ''}`
}

function useHistory(run: number): { events: ChangeEvent[]; isDone: boolean } {
  const [events, setEvents] = useState<ChangeEvent[]>([])
  const [isDone, setDone] = useState(false)
  useEffect(() => {
    setEvents([])
    setDone(false)
    const add = (some: readonly ChangeEvent[]): void =>
      setEvents((old) => {
        const known = new Set(old.map((event) => event.id))
        const fresh = some.filter((event) => event.instance_id === run && !known.has(event.id))
        return fresh.length ? [...old, ...fresh].sort((a, b) => a.id - b.id) : old
      })
    const abort = new AbortController()
    void replay(run, abort, add).finally(() => setDone(true))
    const stop = tapEvents(add)
    return () => {
      abort.abort()
      stop()
    }
  }, [run])
  return { events, isDone }
}

/** Reads what was, and ends when nothing more comes: what is to come, the one stream brings. */
async function replay(run: number, abort: AbortController, add: (events: ChangeEvent[]) => void): Promise<void> {
  let quiet = setTimeout(() => abort.abort(), 10_000)
  try {
    const response = await fetch(`/api/v1/events?instance_id=${run}`, {
      headers: { 'Last-Event-ID': '0' },
      signal: abort.signal,
    })
    await readEvents(response, (events) => {
      clearTimeout(quiet)
      quiet = setTimeout(() => abort.abort(), QUIET_MS)
      add(events.map((event) => JSON.parse(event.data) as ChangeEvent))
    })
  } catch {
    // Ended by us; what has come is there.
  } finally {
    clearTimeout(quiet)
  }
}
