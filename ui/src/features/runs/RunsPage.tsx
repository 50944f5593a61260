/** All runs, the newest first: by project, workflow, state, label and time; and acting on many. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Button, Input, Select, Tag } from 'antd'
import { useEffect, useMemo, useState } from 'react'
import type { WorkflowState } from '@/api/types'
import { BulkDialog, type BulkCommand, type Target } from '@/entities/Bulk'
import { useRows } from '@/entities/lists'
import { Act, StateMark, Trouble, useRefusal } from '@/entities/marks'
import { runCounts, runs, type RunFilter } from '@/entities/queries'
import { RunTable, type Choice } from '@/entities/RunTable'
import { RUN_STATES } from '@/entities/states'
import { useNamed, useT } from '@/shared/i18n'
import { Empty, Loading, PageHead } from '@/shared/ui/parts'

export interface RunsSearch {
  workflow?: string | undefined
  state?: WorkflowState[] | undefined
  text?: string | undefined
  label?: string | undefined
  since?: Since | undefined
  backfill?: number | undefined
}

export type Since = 'hour' | 'day' | 'week'
const HOURS: Record<Since, number> = { hour: 1, day: 24, week: 168 }
const COMMANDS: readonly BulkCommand[] = ['PAUSE', 'RESUME', 'STOP', 'RECOVER', 'RERUN']
const MOST = 500 // ids of one request

interface Props {
  project: string | undefined
  search: RunsSearch
  onSearch: (to: RunsSearch) => void
  onOpen: (id: number) => void
}

export function RunsPage({ project, search, onSearch, onOpen }: Props) {
  const t = useT()
  const filter = useFilter(project, search)
  const list = useRows(runs(filter))
  const counts = useQuery(runCounts(filter))
  const [chosen, setChosen] = useState<ReadonlySet<number> | 'all'>(new Set())
  const [asked, setAsked] = useState<BulkCommand | null>(null)
  useEffect(() => setChosen(new Set()), [filter])
  const { rows } = list
  const byId = useMemo(() => new Map(rows.map((run) => [run.id, run])), [rows])
  const change = (to: RunsSearch): void => onSearch({ ...search, ...to })
  const total = counts.data ? `${counts.data.total.count}${counts.data.total.is_more ? '+' : ''}` : '…'
  const choice: Choice = {
    has: (id) => chosen === 'all' || chosen.has(id),
    toggle: (id) => setChosen((old) => {
      const next = new Set(old === 'all' ? rows.map((run) => run.id) : old)
      if (!next.delete(id)) next.add(id)
      return next
    }),
    isAll: chosen === 'all' || (rows.length > 0 && chosen.size >= rows.length),
    toggleAll: () => setChosen((old) => (old === 'all' || old.size >= rows.length ? new Set() : new Set(rows.slice(0, MOST).map((run) => run.id)))),
  }
  const target: Target = chosen === 'all' ? { filter } : { ids: [...chosen].slice(0, MOST) }
  const nameOf = (id: number): string => {
    const run = byId.get(id)
    return run ? `#${id} ${run.project}/${run.workflow}` : `#${id}`
  }
  return (
    <>
      <PageHead title={t('runs.title')}>
        <Link className="head-link" to="/backfills" search={project ? { project } : {}}>{t('runs.backfills')}</Link>
      </PageHead>
      <div className="filters">
        <Find placeholder={t('common.workflow')} value={search.workflow} onFind={(workflow) => change({ workflow })} isFirst />
        <Find placeholder={t('runs.text')} value={search.text} onFind={(text) => change({ text })} />
        <Find placeholder={t('runs.label')} value={search.label} onFind={(label) => change({ label })} />
        <Select
          mode="multiple"
          allowClear
          className="filter-state"
          placeholder={t('runs.states')}
          aria-label={t('common.state')}
          value={search.state ?? []}
          onChange={(state: WorkflowState[]) => change({ state: state.length ? state : undefined })}
          options={RUN_STATES.map((state) => ({ value: state, label: <StateMark state={state} /> }))}
        />
        <Select<Since | 'all'>
          className="filter-short"
          aria-label={t('runs.since')}
          value={search.since ?? 'all'}
          onChange={(since) => change({ since: since === 'all' ? undefined : since })}
          options={(['all', 'hour', 'day', 'week'] as const).map((value) => ({ value, label: t(`runs.since.${value}`) }))}
        />
        {search.backfill ? <Tag closable onClose={() => change({ backfill: undefined })}>{t('runs.ofBackfill', { id: search.backfill })}</Tag> : null}
      </div>
      {list.error ? <Trouble error={list.error} retry={list.again} /> : null}
      {list.isPending ? <Loading rows={10} /> : null}
      {!list.isPending && !list.error && !rows.length ? <Empty title={t('runs.empty')} /> : null}
      {chosen === 'all' || chosen.size ? (
        <Actions project={project} text={chosen === 'all' ? t('bulk.isAll', { count: total }) : t('bulk.chosen', { count: chosen.size })} onAsk={setAsked} onClear={() => setChosen(new Set())}>
          {chosen !== 'all' && choice.isAll ? <Button size="small" type="link" onClick={() => setChosen('all')}>{t('bulk.allMatching', { count: total })}</Button> : null}
        </Actions>
      ) : null}
      {rows.length ? (
        <RunTable
          rows={rows}
          onOpen={onOpen}
          choice={choice}
          onEnd={list.more}
          footer={<span className="dim num" data-count={rows.length}>{t('common.rows', { count: rows.length })}{list.hasMore ? ` / ${total}` : ''}</span>}
        />
      ) : null}
      {asked ? <BulkDialog command={asked} target={target} nameOf={nameOf} stateOf={(id) => byId.get(id)?.state} onClose={() => { setAsked(null); setChosen(new Set()) }} /> : null}
    </>
  )
}

function Find({ placeholder, value, onFind, isFirst = false }: { placeholder: string; value: string | undefined; onFind: (value: string | undefined) => void; isFirst?: boolean }) {
  return (
    <Input
      key={value ?? ''}
      allowClear
      {...(isFirst ? { 'data-search': true } : {})}
      className="filter-text"
      placeholder={placeholder}
      aria-label={placeholder}
      defaultValue={value}
      onPressEnter={(event) => onFind(event.currentTarget.value.trim() || undefined)}
      onBlur={(event) => event.target.value.trim() !== (value ?? '') && onFind(event.target.value.trim() || undefined)}
      onClear={() => onFind(undefined)}
    />
  )
}

function Actions({ project, text, children, onAsk, onClear }: { project: string | undefined; text: string; children: React.ReactNode; onAsk: (command: BulkCommand) => void; onClear: () => void }) {
  const t = useT()
  const named = useNamed()
  const refusal = useRefusal('run.operate', project ?? '')
  return (
    <div className="bulk-bar" role="toolbar" aria-label={t('bulk.actions')}>
      <strong className="num">{text}</strong>
      {children}
      <span className="grow" />
      {COMMANDS.map((command) => (
        // Without a project each run is judged by itself, and the preview says so.
        <Act key={command} size="small" refusal={project ? refusal : null} danger={command === 'STOP'} onClick={() => onAsk(command)}>{named('command', command)}…</Act>
      ))}
      <Button size="small" type="text" onClick={onClear}>{t('common.clear')}</Button>
    </div>
  )
}

/** The filters of the API. A time counts from the minute in which it was chosen. */
function useFilter(project: string | undefined, search: RunsSearch): RunFilter {
  const { workflow, state, text, label, since, backfill } = search
  return useMemo(() => {
    const minute = Math.floor(Date.now() / 60_000) * 60_000
    const found: RunFilter = {
      project,
      workflow,
      state,
      text,
      label: label ? [label] : undefined,
      since: since ? new Date(minute - HOURS[since] * 3_600_000).toISOString() : undefined,
      backfill_id: backfill,
    }
    return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))
  }, [project, workflow, state, text, label, since, backfill])
}
