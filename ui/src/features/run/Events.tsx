/** What has happened in a run: replayed from the event stream once, then live; and the graph as of any moment. */
import { CaretRightOutlined, PauseOutlined } from '@ant-design/icons'
import { Button, Select } from 'antd'
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { StateMark } from '@/entities/marks'
import { WorkflowGraph } from '@/entities/WorkflowGraph'
import type { PictureTask } from '@/graph/Graph'
import { readEvents } from '@/live/sse'
import { tapEvents } from '@/live/live'
import type { ChangeEvent } from '@/live/stream'
import { useSaid, useT, type Said } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading } from '@/shared/ui/parts'
import { momentAt } from './replay'

const QUIET_MS = 600 // without a missed event: all have come

const STEP_MS = 400 // of the replay, from one event to the next
type Kind = 'all' | 'instance' | 'task'

interface Props {
  run: number
  project: string
  workflow: string
  zone: string
  tasks: readonly PictureTask[]
  chosen: string | undefined
  onTask: (task: string) => void
}

export function Events({ run, project, workflow, zone, tasks, chosen, onTask }: Props) {
  const t = useT()
  const said = useSaid()
  const { events, isDone } = useHistory(run)
  const [kind, setKind] = useState<Kind>('all')
  const [at, setAt] = useState<number | null>(null) // null: at the end, which grows
  const shown = useMemo(() => events.filter((event) => kind === 'all' || event.kind.startsWith(`${kind}.`)), [events, kind])
  const count = at === null ? shown.length : Math.min(at, shown.length)
  // The moment is one of all events, whichever of them the table shows.
  const until = at === null ? events.length : events.indexOf(shown[count - 1] as ChangeEvent) + 1
  const moment = useMemo(() => momentAt(events, until), [events, until])
  const picture = useMemo(() => tasks.map((task) => ({ ...task, note: '', state: moment.tasks.get(task.name) ?? 'WAITING' })), [tasks, moment])
  const columns: Column<ChangeEvent>[] = [
    { key: 'at', title: t('run.event.at'), width: 'minmax(190px, 230px)', render: (event) => <Time at={event.at} zone={zone} /> },
    { key: 'who', title: t('run.event.who'), width: 'minmax(120px, 1fr)', render: (event) => <span className="mono cut">{subject(event)}</span> },
    { key: 'what', title: t('run.event.what'), width: 'minmax(120px, 150px)', render: (event) => (typeof event.data.state === 'string' ? <StateMark state={event.data.state} /> : <span className="dim">{event.kind}</span>) },
    { key: 'why', title: t('common.reason'), width: 'minmax(120px, 2fr)', hide: 'narrow', render: (event) => <span className="cut dim">{[said(event.data.reason_said as Said | undefined, typeof event.data.reason === 'string' ? event.data.reason : null), event.data.worker].filter((part) => typeof part === 'string' && part).join(' · ')}</span> },
  ]
  if (!events.length) return isDone ? <Empty title={t('run.noEvents')} /> : <Loading />
  const last = shown[count - 1]
  return (
    <div className="replay">
      <Player count={shown.length} at={count} onAt={(value) => setAt(value >= shown.length ? null : value)}>
        {moment.run ? <StateMark state={moment.run} /> : null}
        {last ? <Time at={last.at} zone={zone} /> : null}
        <Select<Kind> size="small" className="filter-short" aria-label={t('events.kind')} value={kind} onChange={(to) => { setKind(to); setAt(null) }} options={(['all', 'instance', 'task'] as const).map((value) => ({ value, label: t(`events.kind.${value}`) }))} />
      </Player>
      <div className="graph-frame replay-graph"><WorkflowGraph project={project} workflow={workflow} tasks={picture} chosen={chosen} onChoose={onTask} /></div>
      <DataTable label={t('run.events')} rows={shown} columns={columns} rowKey={(event) => event.id} rowHeight={32} isChosen={(event) => event === last} onOpen={(event) => setAt(shown.indexOf(event) + 1)} />
    </div>
  )
}

/** Moves through the events, by hand or by itself. */
function Player({ count, at, onAt, children }: { count: number; at: number; onAt: (at: number) => void; children: ReactNode }) {
  const t = useT()
  const [isPlaying, setPlaying] = useState(false)
  const step = useRef(() => undefined as void)
  step.current = () => {
    onAt(at + 1)
    if (at + 1 >= count) setPlaying(false)
  }
  useEffect(() => {
    if (!isPlaying) return
    const timer = setInterval(() => step.current(), STEP_MS)
    return () => clearInterval(timer)
  }, [isPlaying])
  const play = (): void => {
    if (!isPlaying && at >= count) onAt(0)
    setPlaying(!isPlaying)
  }
  return (
    <div className="replay-bar" role="group" aria-label={t('replay.title')}>
      <Button size="small" icon={isPlaying ? <PauseOutlined /> : <CaretRightOutlined />} aria-label={t(isPlaying ? 'replay.pause' : 'replay.play')} onClick={play} />
      <input type="range" min={0} max={count} value={at} aria-label={t('replay.slider')} aria-valuetext={t('replay.at', { at, count })} onChange={(event) => { setPlaying(false); onAt(Number(event.target.value)) }} />
      <span className="num dim" data-moment={at}>{t('replay.at', { at, count })}</span>
      {children}
    </div>
  )
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
