/** A backfill: which dates have run, which wait, and what can be done about them. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Segmented } from 'antd'
import { api, ApiProblem, take } from '@/api/client'
import type { Backfill, BackfillRun, BackfillRunState } from '@/api/types'
import { ListTable, pagesOf, useRows } from '@/entities/lists'
import { Act, StateMark, Trouble, useRefusal } from '@/entities/marks'
import { backfill as backfillOf } from '@/entities/queries'
import { useAsk, useDo } from '@/entities/saving'
import { useNamed, useT, type TextKey } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty, Facts, Loading, PageHead, Panel } from '@/shared/ui/parts'
import { Counts, DATE_STATES } from './Counts'

const REQUESTS = ['pause', 'resume', 'cancel', 'retry'] as const
type Request = (typeof REQUESTS)[number]
const WAIT_S = 30

interface Props {
  id: number
  state: BackfillRunState | undefined
  onState: (state: BackfillRunState | undefined) => void
  onRun: (id: number) => void
}

/** Returns whether a backfill takes a request in its state. docs/backfills.md has the diagram. */
function takes(request: Request, backfill: Backfill): boolean {
  const { state, counts } = backfill
  const lost = (counts.FAILED ?? 0) + (counts.CANCELLED ?? 0)
  switch (request) {
    case 'pause':
      return state === 'RUNNING'
    case 'resume':
      return state === 'PAUSED'
    case 'cancel':
      return state === 'RUNNING' || state === 'PAUSED'
    case 'retry':
      return lost > 0 && state !== 'CANCELLING' && state !== 'SUCCEEDED'
  }
}

export function BackfillPage({ id, state, onState, onRun }: Props) {
  const { data, error, refetch } = useQuery(backfillOf(id))
  const t = useT()
  const named = useNamed()
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={12} />
  return (
    <div className="page-fill">
      <PageHead
        crumbs={
          <>
            <Link to="/workflows" search={{ project: data.project }}>{data.project}</Link>
            <span aria-hidden>/</span>
            <Link to="/projects/$project/workflows/$name" params={{ project: data.project, name: data.workflow }} search={{ tab: 'backfills' }}>{data.workflow}</Link>
          </>
        }
        title={<>{data.workflow} <span className="dim num">{t('backfill.title', { id })}</span></>}
        mark={<StateMark state={data.state} />}
      >
        <Requests backfill={data} />
      </PageHead>
      <div className="run-line">
        <Counts backfill={data} />
        <span className="dim">{t('backfill.by.who', { name: data.requested_by })}</span>
        <span><span className="dim">{t('common.created')}</span> <Time at={data.created_at} /></span>
        <Link to="/runs" search={{ backfill: id }}>{t('nav.runs')}</Link>
      </div>
      {data.reason ? <p className={`reason ${data.state === 'FAILED' ? 'bad' : ''}`}>{data.reason}</p> : null}
      <Segmented
        className="scrolls"
        value={state ?? 'all'}
        onChange={(value) => onState(value === 'all' ? undefined : (value as BackfillRunState))}
        options={[{ value: 'all', label: `${t('backfill.all')} ${data.total}` }, ...DATE_STATES.filter((one) => data.counts[one]).map((one) => ({ value: one, label: `${named('state', one)} ${data.counts[one]}` }))]}
      />
      <Dates id={id} state={state} onRun={onRun} />
      <details className="more"><summary>{t('attempt.details')}</summary><Request request={data.request} /></details>
    </div>
  )
}

function Requests({ backfill }: { backfill: Backfill }) {
  const t = useT()
  const named = useNamed()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal('run.operate', backfill.project)
  const of = (state: string): number => backfill.counts[state] ?? 0
  const send = async (request: Request): Promise<void> => {
    const sent = await take(
      api.POST('/api/v1/backfills/{backfill_id}/{request}', { params: { path: { backfill_id: backfill.id, request }, header: { 'idempotency-key': crypto.randomUUID() } } }),
    )
    const outcome = await take(api.GET('/api/v1/commands/{command_id}', { params: { path: { command_id: sent.id }, query: { wait: WAIT_S } } }))
    if (outcome.state === 'REFUSED') throw new ApiProblem(409, { title: t('command.refused', { command: named('backfill.request', request) }), detail: outcome.reason ?? '' })
  }
  const confirm = (request: Request): void => {
    const name = named('backfill.request', request)
    ask({
      title: `${name} · ${backfill.workflow} · ${t('backfill.title', { id: backfill.id })}`,
      text: t(`backfill.request.${request}.text` as TextKey, { started: of('STARTED'), waiting: of('WAITING'), failed: of('FAILED') + of('CANCELLED') }),
      ok: name,
      danger: request === 'cancel',
      act: () => act(() => send(request), t('backfill.asked', { request: name }), [['backfills'], ['instances']]),
    })
  }
  return REQUESTS.map((request) => (
    <Act
      key={request}
      danger={request === 'cancel'}
      refusal={refusal ?? (takes(request, backfill) ? null : t('command.notNow', { state: named('state', backfill.state) }))}
      onClick={() => confirm(request)}
    >
      {named('backfill.request', request)}…
    </Act>
  ))
}

function Dates({ id, state, onRun }: { id: number; state: BackfillRunState | undefined; onRun: (id: number) => void }) {
  const t = useT()
  // Among the runs, so that what becomes of a run renews it.
  const list = useRows(
    pagesOf<BackfillRun>(['instances', 'dates', id, state], (cursor) =>
      take(api.GET('/api/v1/backfills/{backfill_id}/runs', { params: { path: { backfill_id: id }, query: { ...(state ? { state: [state] } : {}), limit: 200, cursor } } })),
    ),
  )
  const columns: Column<BackfillRun>[] = [
    { key: 'position', title: t('backfill.position'), width: '56px', hide: 'narrow', render: (one) => <span className="num dim">{one.position}</span> },
    { key: 'state', title: t('common.state'), width: '128px', render: (one) => <StateMark state={one.state} /> },
    { key: 'time', title: t('time.logical'), width: 'minmax(216px, 1fr)', render: (one) => <Time at={one.logical_time} /> },
    { key: 'workflow', title: t('common.workflow'), width: 'minmax(110px, 1fr)', hide: 'medium', render: (one) => <span className="cut">{one.workflow}</span> },
    { key: 'run', title: t('backfill.run'), width: '76px', render: (one) => (one.instance_id === null ? <span className="dim">–</span> : <Link className="num" to="/runs/$id" params={{ id: String(one.instance_id) }}>#{one.instance_id}</Link>) },
    { key: 'tries', title: t('backfill.tries'), width: '64px', hide: 'narrow', render: (one) => <span className="num">{one.tries}</span> },
    { key: 'reason', title: t('common.reason'), width: 'minmax(100px, 2fr)', hide: 'narrow', render: (one) => <span className="cut dim" title={one.reason ?? ''}>{one.reason ?? ''}</span> },
  ]
  return (
    <ListTable
      list={list}
      label={t('backfill.dates')}
      columns={columns}
      rowKey={(one) => one.position}
      rowHeight={36}
      onOpen={(one) => one.instance_id !== null && onRun(one.instance_id)}
      empty={<Empty title={t('backfill.none')} />}
    />
  )
}

function Request({ request }: { request: Record<string, unknown> }) {
  const shown = Object.entries(request).filter(([, value]) => value !== null && value !== '' && !(Array.isArray(value) && !value.length))
  return <Panel><Facts items={shown.map(([name, value]) => [<code key="n">{name}</code>, <code key="v" className="wrap-any">{typeof value === 'string' ? value : JSON.stringify(value)}</code>])} /></Panel>
}
