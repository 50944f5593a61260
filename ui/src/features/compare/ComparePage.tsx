/** Why did this run differ? Two runs beside each other: tasks, graph, parameters, script and log. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Alert, Switch, Tabs } from 'antd'
import { useMemo, useState } from 'react'
import { api, take } from '@/api/client'
import type { Comparison, InstanceTask } from '@/api/types'
import { AttemptDiff } from '@/entities/AttemptDiff'
import { StateMark, Trouble } from '@/entities/marks'
import { run as runOf } from '@/entities/queries'
import { WorkflowGraph } from '@/entities/WorkflowGraph'
import type { PictureTask } from '@/graph/Graph'
import { useT } from '@/shared/i18n'
import { durationText } from '@/shared/time/format'
import { Time } from '@/shared/time/Time'
import { DataTable, useWidth, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading, PageHead, Panel } from '@/shared/ui/parts'

export type CompareTab = 'tasks' | 'graph' | 'parameters'
type Row = Comparison['tasks'][number]

interface Props {
  one: number
  other: number
  task: string | undefined
  tab: CompareTab | undefined
  onView: (to: { task?: string | undefined; tab?: CompareTab | undefined }) => void
}

const comparison = (one: number, other: number) =>
  queryOptions({
    queryKey: ['instance', one, 'comparison', other],
    queryFn: () => take(api.GET('/api/v1/instances/{instance_id}/comparison/{other_instance_id}', { params: { path: { instance_id: one, other_instance_id: other } } })),
  })

export function ComparePage({ one, other, task, tab, onView }: Props) {
  const t = useT()
  const { data, error, refetch } = useQuery(comparison(one, other))
  const shown = useQuery(runOf(other))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={12} />
  const name = shown.data?.workflow ?? ''
  return (
    <div className="page-fill">
      <PageHead
        crumbs={shown.data ? <Link to="/projects/$project/workflows/$name" params={{ project: shown.data.project, name }}>{`${shown.data.project}/${name}`}</Link> : null}
        title={<>{t('compare.title')} <span className="dim num">#{one} ↔ #{other}</span></>}
      />
      <div className="columns">
        <Side side={data.one} label={t('compare.one')} than={null} />
        <Side side={data.other} label={t('compare.other')} than={data.one.seconds} />
      </div>
      {data.one.version === data.other.version ? null : <Alert type="info" title={t('compare.version', { a: data.one.version, b: data.other.version })} />}
      <Tabs
        className="fill-tabs"
        activeKey={tab ?? 'tasks'}
        onChange={(key) => onView({ tab: key as CompareTab })}
        destroyOnHidden
        items={[
          { key: 'tasks', label: t('compare.tasks'), children: <Tasks data={data} chosen={task} onTask={(to) => onView({ task: to })} /> },
          { key: 'graph', label: t('compare.graph'), children: <Picture data={data} run={other} chosen={task} onTask={(to) => onView({ task: to, tab: 'tasks' })} /> },
          { key: 'parameters', label: t('compare.parameters'), children: <Values data={data} /> },
        ]}
      />
    </div>
  )
}

function Side({ side, label, than }: { side: Comparison['one']; label: string; than: number | null }) {
  const t = useT()
  return (
    <Panel title={<>{label} <Link className="num" to="/runs/$id" params={{ id: String(side.instance_id) }}>#{side.instance_id}</Link></>} aside={<StateMark state={side.state} />}>
      <div className="row side-facts">
        <span><span className="dim">{t('time.logical')}</span> <Time at={side.logical_time} /></span>
        <span><span className="dim">{t('common.duration')}</span> <span className="num">{side.seconds === null ? '–' : durationText(side.seconds * 1000)}</span> {side.seconds === null || than === null ? null : <Slower by={side.seconds - than} />}</span>
        <span><span className="dim">{t('common.version')}</span> <span className="num">{side.version}</span></span>
      </div>
    </Panel>
  )
}

function Slower({ by }: { by: number }) {
  const t = useT()
  if (Math.abs(by) < 0.05) return null
  const time = durationText(Math.abs(by) * 1000)
  return <span className={by > 0 ? 'slower num' : 'faster num'}>{by > 0 ? t('compare.slower', { time }) : t('compare.faster', { time })}</span>
}

function Tasks({ data, chosen, onTask }: { data: Comparison; chosen: string | undefined; onTask: (task: string) => void }) {
  const t = useT()
  const [isOnly, setOnly] = useState(false)
  const isNarrow = useWidth() < 640
  const rows = isOnly ? data.tasks.filter((row) => row.differs) : data.tasks
  const longest = Math.max(0.1, ...data.tasks.flatMap((row) => [row.one?.seconds ?? 0, row.other?.seconds ?? 0]))
  const side = (of: Row['one']) => (of ? <StateMark state={of.state} bare={isNarrow} /> : <span className="dim">{t('compare.missing')}</span>)
  const columns: Column<Row>[] = [
    { key: 'task', title: t('common.name'), width: 'minmax(120px, 1.2fr)', render: (row) => <button type="button" className={row.differs ? 'link mono strong cut' : 'link mono cut'} onClick={() => onTask(row.task)}>{row.task}</button> },
    { key: 'one', title: t('compare.one'), width: isNarrow ? '48px' : '128px', render: (row) => side(row.one) },
    { key: 'other', title: t('compare.other'), width: isNarrow ? '48px' : '128px', render: (row) => side(row.other) },
    { key: 'bars', title: t('common.duration'), width: 'minmax(140px, 1.6fr)', hide: 'narrow', render: (row) => <Bars one={row.one?.seconds ?? 0} other={row.other?.seconds ?? 0} longest={longest} /> },
    { key: 'slower', title: t('compare.difference'), width: '130px', hide: 'narrow', render: (row) => (row.slower_s === null ? <span className="dim">–</span> : <Slower by={row.slower_s} />) },
  ]
  return (
    <div className="stack">
      <label className="switch"><Switch size="small" checked={isOnly} onChange={setOnly} /> {t('compare.onlyDifferent')}</label>
      {rows.length ? <DataTable label={t('compare.tasks')} rows={rows} columns={columns} rowKey={(row) => row.task} rowHeight={36} onOpen={(row) => onTask(row.task)} isChosen={(row) => row.task === chosen} /> : <Empty title={t('compare.same')} />}
      {chosen ? <Attempts key={chosen} one={data.one.instance_id} other={data.other.instance_id} task={chosen} /> : <p className="dim">{t('compare.choose')}</p>}
    </div>
  )
}

function Bars({ one, other, longest }: { one: number; other: number; longest: number }) {
  const width = (seconds: number): string => `${Math.max(seconds ? 1 : 0, (100 * seconds) / longest).toFixed(1)}%`
  return (
    <span className="pair-bars" title={`${durationText(one * 1000)} ↔ ${durationText(other * 1000)}`}>
      <span className="first" style={{ width: width(one) }} />
      <span className={other > one * 1.2 ? 'second longer' : 'second'} style={{ width: width(other) }} />
    </span>
  )
}

function Picture({ data, run, chosen, onTask }: { data: Comparison; run: number; chosen: string | undefined; onTask: (task: string) => void }) {
  const t = useT()
  const { data: other } = useQuery(runOf(run))
  const differs = useMemo(() => new Set(data.tasks.filter((row) => row.differs).map((row) => row.task)), [data])
  const picture = useMemo(
    () =>
      (other?.tasks ?? []).map((task): PictureTask => {
        const row = data.tasks.find((one) => one.task === task.task)
        const slower = row?.slower_s
        return { name: task.task, type: task.type, dependsOn: task.depends_on, state: task.state, note: slower && Math.abs(slower) >= 0.05 ? `${slower > 0 ? '+' : '−'}${durationText(Math.abs(slower) * 1000)}` : '' }
      }),
    [other, data],
  )
  if (!other) return <Loading />
  return (
    <div className="stack fill">
      <p className="dim">{t('compare.changes', { count: differs.size })}</p>
      <div className="graph-frame"><WorkflowGraph project={other.project} workflow={other.workflow} tasks={picture} chosen={chosen} onChoose={onTask} critical={differs} /></div>
    </div>
  )
}

function Values({ data }: { data: Comparison }) {
  const t = useT()
  const rows = [...data.parameters, ...data.labels]
  if (!rows.length) return <Empty title={t('compare.same')} />
  return (
    <DataTable
      label={t('compare.parameters')}
      rows={rows}
      rowKey={(row) => row.name}
      columns={[
        { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (row) => <code>{row.name}</code> },
        { key: 'one', title: t('compare.one'), width: 'minmax(110px, 1.4fr)', render: (row) => (row.one === null ? <span className="dim">{t('compare.missing')}</span> : <code>{row.one}</code>) },
        { key: 'other', title: t('compare.other'), width: 'minmax(110px, 1.4fr)', render: (row) => (row.other === null ? <span className="dim">{t('compare.missing')}</span> : <code>{row.other}</code>) },
      ]}
    />
  )
}

/** What the newest attempts of a task were given, and what they wrote. */
function Attempts({ one, other, task }: { one: number; other: number; task: string }) {
  const t = useT()
  const a = useQuery(runOf(one))
  const b = useQuery(runOf(other))
  if (!a.data || !b.data) return <Loading rows={6} />
  const of = (tasks: readonly InstanceTask[]) => tasks.find((found) => found.task === task) ?? null
  return <Panel title={t('compare.attempt', { task })}><AttemptDiff one={of(a.data.tasks)} other={of(b.data.tasks)} /></Panel>
}
