/** The same request to many: a preview of exactly what it touches, then a result for each. */
import { Alert, Input, Modal, Progress, Segmented } from 'antd'
import { useEffect, useMemo, useRef, useState } from 'react'
import { api, take, type ApiProblem } from '@/api/client'
import type { Bulk, BulkItem, Command } from '@/api/types'
import { useNamed, useT } from '@/shared/i18n'
import { DataTable, useWidth, type Column } from '@/shared/ui/DataTable'
import { Loading } from '@/shared/ui/parts'
import type { Mode } from './commands'
import { StateMark, Trouble } from './marks'
import type { RunFilter } from './queries'

export type BulkCommand = 'PAUSE' | 'RESUME' | 'STOP' | 'RECOVER' | 'RERUN' | 'RERUN_TASKS' | 'KILL_TASK' | 'FORCE_SUCCESS'

/** What it is sent to: these, or all that the filters mean. */
export type Target = { ids: readonly number[] } | { filter: RunFilter }

interface Props {
  command: BulkCommand
  target: Target
  /** Of RERUN_TASKS: which. */
  tasks?: readonly string[]
  /** What an id is called in the tables. */
  nameOf: (id: number) => string
  /** The state that it is in, as far as that is known. */
  stateOf?: (id: number) => string | undefined
  onClose: () => void
}

const DANGEROUS = new Set<BulkCommand>(['STOP', 'KILL_TASK', 'FORCE_SUCCESS'])
const ON_TASKS = new Set<BulkCommand>(['KILL_TASK', 'FORCE_SUCCESS'])
const AT_ONCE = 3 // outcomes that are waited for: browsers have six connections
const WAIT_S = 20

export function BulkDialog({ command, target, tasks, nameOf, stateOf, onClose }: Props) {
  const t = useT()
  const named = useNamed()
  const width = useWidth()
  const key = useRef(crypto.randomUUID())
  const [mode, setMode] = useState<Mode>('downstream')
  const [reason, setReason] = useState('')
  const [preview, setPreview] = useState<Bulk | null>(null)
  const [results, setResults] = useState<readonly BulkItem[] | null>(null)
  const [outcomes, setOutcomes] = useState<ReadonlyMap<number, Command>>(new Map())
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isSending, setSending] = useState(false)
  const [round, setRound] = useState(0)
  const isOpen = useRef(true)
  useEffect(() => {
    isOpen.current = true
    return () => {
      isOpen.current = false
    }
  }, [])
  const more = command === 'RERUN_TASKS' ? { mode, tasks: [...(tasks ?? [])] } : command === 'FORCE_SUCCESS' ? { reason: reason.trim() || t('bulk.actions') } : {}
  const send = (isDry: boolean, digest?: string): Promise<Bulk> => {
    const byFilter = 'filter' in target
    return take(
      api.POST('/api/v1/bulk-commands', {
        params: { query: { ...(byFilter ? target.filter : {}), ...(isDry ? { dry_run: true } : {}) }, header: isDry ? {} : { 'idempotency-key': key.current } },
        body: { type: command, ...more, ...(byFilter ? {} : { ids: [...target.ids] }), ...(digest ? { digest } : {}) },
      }),
    )
  }
  useEffect(() => {
    let isGone = false
    setPreview(null)
    send(true).then(
      (found) => {
        if (!isGone) setPreview(found)
      },
      (thrown: ApiProblem) => {
        if (!isGone) setError(thrown)
      },
    )
    return () => {
      isGone = true
    }
    // What is asked is that of the moment it opens; the mode alone changes here.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [mode, round])

  const go = async (): Promise<void> => {
    setSending(true)
    setError(null)
    try {
      const sent = await send(false, preview?.digest)
      setResults(sent.items)
      await follow(sent.items, () => isOpen.current, (command_) => setOutcomes((old) => new Map(old).set(command_.id, command_)))
    } catch (thrown) {
      setError(thrown as ApiProblem)
      key.current = crypto.randomUUID()
      if ((thrown as ApiProblem).status === 412) setRound((old) => old + 1)
    } finally {
      setSending(false)
    }
  }
  const name = named('command', command)
  const willDo = preview?.items.filter((item) => !item.problem && !item.preview?.refusal).length ?? 0
  const refused = (preview?.items.length ?? 0) - willDo
  const lacksReason = command === 'FORCE_SUCCESS' && !reason.trim()
  return (
    <Modal
      open
      width={Math.min(820, width - 16)}
      title={t(results ? 'bulk.results' : 'bulk.title', { command: name })}
      okText={results ? t('common.close') : t('bulk.go', { command: name, count: willDo })}
      cancelText={t('common.cancel')}
      cancelButtonProps={results ? { style: { display: 'none' } } : {}}
      okButtonProps={{ danger: !results && DANGEROUS.has(command), disabled: !results && (willDo === 0 || lacksReason) }}
      confirmLoading={isSending && !results}
      onOk={() => (results ? onClose() : void go())}
      onCancel={onClose}
      className="bulk"
    >
      <div className="stack" data-bulk={results ? 'results' : preview ? 'preview' : 'looking'}>
        <p>{named('command', `${command}.what`)}</p>
        {command === 'RERUN_TASKS' && !results ? <Segmented<Mode> value={mode} onChange={setMode} options={(['only', 'upstream', 'downstream'] as const).map((value) => ({ value, label: named('mode', value) }))} /> : null}
        {error?.status === 412 ? <Alert type="warning" showIcon title={t('bulk.stale')} /> : error ? <Trouble error={error} /> : null}
        {results ? <Results items={results} outcomes={outcomes} nameOf={nameOf} /> : null}
        {!results && preview ? (
          <>
            <p className="strong" data-will={willDo}>
              {t(ON_TASKS.has(command) ? 'bulk.willTasks' : 'bulk.will', { count: willDo })} {refused ? <span className="dim">{t('bulk.refused', { count: refused })}</span> : null}
            </p>
            {preview.is_more ? <Alert type="info" title={t('bulk.isMore', { count: preview.items.length })} /> : null}
            <Preview items={ordered(preview.items)} nameOf={nameOf} stateOf={stateOf} />
          </>
        ) : null}
        {!results && !preview && !error ? <><p className="dim">{t('bulk.looking')}</p><Loading rows={4} /></> : null}
        {command === 'FORCE_SUCCESS' && !results ? <Input.TextArea rows={2} placeholder={t('command.reason')} aria-label={t('command.reason')} value={reason} onChange={(event) => setReason(event.target.value)} /> : null}
      </div>
    </Modal>
  )
}

function Preview({ items, nameOf, stateOf }: { items: readonly BulkItem[]; nameOf: (id: number) => string; stateOf: ((id: number) => string | undefined) | undefined }) {
  const t = useT()
  const columns: Column<BulkItem>[] = [
    { key: 'id', title: t('common.name'), width: 'minmax(120px, 1fr)', render: (item) => <span className="cut">{nameOf(item.id)}</span> },
    { key: 'state', title: t('common.state'), width: '120px', hide: 'narrow', render: (item) => { const state = stateOf?.(item.id); return state ? <StateMark state={state} /> : <span className="dim">–</span> } },
    { key: 'becomes', title: t('bulk.becomes'), width: '120px', hide: 'narrow', render: (item) => (item.preview?.state && !item.preview.refusal ? <StateMark state={item.preview.state} /> : <span className="dim">–</span>) },
    { key: 'touched', title: t('bulk.touched'), width: 'minmax(130px, 1.6fr)', render: (item) => <Touched item={item} /> },
  ]
  return <div className="bulk-table"><DataTable label={t('bulk.touched')} rows={items} columns={columns} rowKey={(item) => item.id} rowHeight={32} /></div>
}

/** What would change comes first. */
function ordered(items: readonly BulkItem[]): BulkItem[] {
  const isRefused = (item: BulkItem): number => Number(item.problem !== null || Boolean(item.preview?.refusal))
  return [...items].sort((a, b) => isRefused(a) - isRefused(b))
}

function Touched({ item }: { item: BulkItem }) {
  const t = useT()
  const refusal = item.problem?.detail ?? item.preview?.refusal
  if (refusal) return <span className="cut dim" title={refusal}>{refusal}</span>
  if (!item.preview?.tasks) return <span className="dim">{t('bulk.notLooked')}</span>
  const count = item.preview.tasks.length + item.preview.more_tasks
  const text = item.preview.tasks.map((task) => task.task).join(', ')
  return <span className="cut" title={text}><span className="num">{t('bulk.touches', { count })}</span> <span className="dim mono">{text}</span></span>
}

function Results({ items, outcomes, nameOf }: { items: readonly BulkItem[]; outcomes: ReadonlyMap<number, Command>; nameOf: (id: number) => string }) {
  const t = useT()
  const stateOf = (item: BulkItem): string => (item.command_id === null ? 'REFUSED' : (outcomes.get(item.command_id)?.state ?? 'PENDING'))
  const counts = useMemo(() => {
    const found = { done: 0, refused: 0, open: 0 }
    for (const item of items) {
      const state = item.command_id === null ? 'REFUSED' : (outcomes.get(item.command_id)?.state ?? 'PENDING')
      found[state === 'DONE' ? 'done' : state === 'REFUSED' ? 'refused' : 'open'] += 1
    }
    return found
  }, [items, outcomes])
  const text = t('bulk.done', counts)
  const columns: Column<BulkItem>[] = [
    { key: 'id', title: t('common.name'), width: 'minmax(120px, 1fr)', render: (item) => <span className="cut">{nameOf(item.id)}</span> },
    { key: 'outcome', title: t('bulk.outcome'), width: '130px', render: (item) => <StateMark state={stateOf(item)} /> },
    { key: 'reason', title: t('common.reason'), width: 'minmax(120px, 2fr)', render: (item) => { const reason = item.problem?.detail ?? outcomes.get(item.command_id ?? 0)?.reason ?? ''; return <span className="cut dim" title={reason}>{reason}</span> } },
  ]
  return (
    <>
      <div role="status" data-outcome={`${counts.done}/${counts.refused}/${counts.open}`}>
        <Progress percent={(100 * (items.length - counts.open)) / Math.max(1, items.length)} showInfo={false} size="small" aria-label={text} status={counts.refused ? 'exception' : 'normal'} />
        <span>{text}</span>
      </div>
      <div className="bulk-table"><DataTable label={t('bulk.outcome')} rows={items} columns={columns} rowKey={(item) => item.id} rowHeight={32} /></div>
    </>
  )
}

/** Waits for what became of each command, a few at a time. */
async function follow(items: readonly BulkItem[], isOpen: () => boolean, tell: (command: Command) => void): Promise<void> {
  const open = items.flatMap((item) => (item.command_id === null ? [] : [item.command_id])).reverse()
  const one = async (): Promise<void> => {
    for (let id = open.pop(); id !== undefined && isOpen(); id = open.pop()) {
      tell(await take(api.GET('/api/v1/commands/{command_id}', { params: { path: { command_id: id }, query: { wait: WAIT_S } } })))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, one))
}
