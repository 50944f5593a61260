/** All workflows: which are healthy, what fires next. */
import { CaretRightOutlined, PlusOutlined } from '@ant-design/icons'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Button, Input } from 'antd'
import { useMemo } from 'react'
import { titleOf } from '@/definition/fields'
import type { LastRun, Me, Workflow, WorkflowSort } from '@/api/types'
import { Act, may, StateMark, Trouble } from '@/entities/marks'
import { me as meOf, workflows as workflowsOf } from '@/entities/queries'
import { hasEnded, lookOf } from '@/entities/states'
import { useT } from '@/shared/i18n'
import { useFieldTexts } from '@/shared/i18n/useFieldTexts'
import { durationText } from '@/shared/time/format'
import { Time } from '@/shared/time/Time'
import { DataTable, useWidth, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading, PageHead } from '@/shared/ui/parts'
import { FirstSteps } from './FirstSteps'

/** Orders that a head of a column asks for. */
export type Sort = Extract<WorkflowSort, 'failing' | '-last_run' | 'next_fire'>

export interface WorkflowsSearch {
  q?: string | undefined
  sort?: Sort | undefined
}

interface Props {
  project: string | undefined
  search: WorkflowsSearch
  onSearch: (to: WorkflowsSearch) => void
  onOpen: (project: string, name: string) => void
  onStart: (project: string, name: string) => void
  onNew: (what: 'empty' | 'example') => void
}

const BARS = 14
const keyOf = (project: string, workflow: string): string => `${project}/${workflow}`

export function WorkflowsPage({ project, search, onSearch, onOpen, onStart, onNew }: Props) {
  const t = useT()
  const list = useInfiniteQuery(workflowsOf(project, search.q, search.sort ?? 'name', BARS))
  const isNarrow = useWidth() < 640
  const { data: who } = useQuery(meOf)
  const canEdit = !who || (project ? may(who, 'project.edit', project) : who.is_admin || who.roles.some((role) => may(who, 'project.edit', role.project)))
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data])
  // One direction each: what somebody looks for comes first. Once more, and it is by name.
  const sortBy = (key: Sort) => ({
    active: search.sort !== key ? null : key.startsWith('-') ? ('descending' as const) : ('ascending' as const),
    toggle: () => onSearch({ ...search, sort: search.sort === key ? undefined : key }),
  })
  const texts = useFieldTexts()
  const columns: Column<Workflow>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(110px, 1.6fr)', render: (one) => <span className="two-lines"><Link className="strong cut" to="/projects/$project/workflows/$name" params={{ project: one.project, name: one.name }}>{one.name}</Link><span className="dim cut">{project ? one.description : [one.project, one.description].filter(Boolean).join(' · ')}</span></span> },
    { key: 'state', title: t('common.state'), width: '124px', sort: sortBy('failing'), render: (one) => <LastState run={one.last_runs?.[0]} /> },
    { key: 'runs', title: t('workflows.lastRuns'), width: '150px', hide: 'narrow', sort: sortBy('-last_run'), render: (one) => <RunBars runs={one.last_runs ?? []} /> },
    { key: 'next', title: t('workflows.nextFire'), width: 'minmax(190px, 210px)', hide: 'medium', sort: sortBy('next_fire'), render: (one) => <Time at={one.next_fire_at ?? null} /> },
    { key: 'owner', title: texts[titleOf('owner')] ?? titleOf('owner'), width: 'minmax(70px, 150px)', hide: 'medium', render: (one) => <span className="dim cut">{one.owner}</span> },
    { key: 'tasks', title: t('common.tasks'), width: '60px', hide: 'medium', render: (one) => <span className="num">{one.tasks}</span> },
    { key: 'version', title: t('common.version'), width: '64px', hide: 'medium', render: (one) => <span className="num dim">v{one.version}</span> },
    { key: 'start', title: '', width: isNarrow ? '32px' : '92px', render: (one) => <StartButton isBare={isNarrow} who={who} project={one.project} onClick={() => onStart(one.project, one.name)} /> },
  ]
  return (
    <>
      <PageHead title={t('workflows.title')}>
        <Act refusal={canEdit ? null : t('may.project.edit', { project: project ?? '…' })} icon={<PlusOutlined />} onClick={() => onNew('empty')}>{t('workflows.new')}</Act>
      </PageHead>
      <div className="filters">
        <Input
          allowClear
          data-search
          className="filter-text wide"
          placeholder={t('workflows.search')}
          aria-label={t('workflows.search')}
          value={search.q ?? ''}
          onChange={(event) => onSearch({ ...search, q: event.target.value || undefined })}
        />
      </div>
      {list.error ? <Trouble error={list.error} retry={() => void list.refetch()} /> : null}
      {list.isPending ? <Loading rows={10} /> : null}
      {list.data && !rows.length ? search.q ? <Empty title={t('workflows.noMatch')} /> : <FirstSteps project={project ?? 'default'} onNew={onNew} /> : null}
      {rows.length ? (
        <DataTable
          label={t('workflows.title')}
          rows={rows}
          columns={columns}
          rowKey={(one) => keyOf(one.project, one.name)}
          onOpen={(one) => onOpen(one.project, one.name)}
          rowHeight={52}
          footer={
            <>
              <span className="dim num">{t('common.rows', { count: rows.length })}{list.hasNextPage ? ' +' : ''}</span>
              {list.hasNextPage ? <Button size="small" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{t('common.more')}</Button> : null}
            </>
          }
        />
      ) : null}
    </>
  )
}

function StartButton({ isBare, who, project, onClick }: { isBare: boolean; who: Me | undefined; project: string; onClick: () => void }) {
  const t = useT()
  const refusal = !who || may(who, 'run.operate', project) ? null : t('may.run.operate', { project })
  return <Act refusal={refusal} size="small" icon={<CaretRightOutlined />} onClick={onClick} {...(isBare ? { 'aria-label': t('workflows.start') } : {})}>{isBare ? null : t('workflows.start')}</Act>
}

function LastState({ run }: { run: LastRun | undefined }) {
  const t = useT()
  return run ? <StateMark state={run.state} /> : <span className="dim">{t('workflows.neverRan')}</span>
}

function RunBars({ runs }: { runs: readonly LastRun[] }) {
  const shown = [...runs].reverse()
  const lasted = (run: LastRun): number => (run.started_at && run.finished_at ? Date.parse(run.finished_at) - Date.parse(run.started_at) : 0)
  const longest = Math.max(1, ...shown.map(lasted))
  return (
    <span className="bars">
      {shown.map((run) => (
        <Link
          key={run.id}
          to="/runs/$id"
          params={{ id: String(run.id) }}
          className={`bar tone-${lookOf(run.state).tone}`}
          aria-label={`#${run.id} ${run.state}`}
          title={`#${run.id} · ${run.state}${lasted(run) ? ` · ${durationText(lasted(run))}` : ''}`}
        >
          <span style={{ height: `${hasEnded(run.state) ? Math.max(18, (100 * lasted(run)) / longest) : 100}%` }} />
        </Link>
      ))}
    </span>
  )
}
