/** What waits for what on a day: a picture of workflows with the state of their runs, and the same as a table. */
import { LeftOutlined, RightOutlined } from '@ant-design/icons'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Alert, Button, Input, Select, Tag } from 'antd'
import { useCallback, useMemo, useState } from 'react'
import type { DependencyGraph } from '@/api/types'
import { Graph } from '@/graph/Graph'
import { useT } from '@/shared/i18n'
import { Lasting } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import './dependencies.css'
import { Empty, Loading } from '@/shared/ui/parts'
import { dayAfter, dayIn, pictureOf, rowsOf, type Row } from './dependencies'
import { StateMark, Trouble } from './marks'
import { dependencyGraph } from './queries'

export interface MapView {
  date?: string | undefined
  hops?: number | undefined
}

interface Props extends MapView {
  project: string
  /** Around this one; without it all of the project. */
  workflow?: string
  zone: string
  onView: (to: MapView) => void
  onRun: (id: number) => void
}

const HOPS = [0, 1, 2, 3, 5, 10, 20] as const

export function DependencyMap({ project, workflow, zone, date, hops = 2, onView, onRun }: Props) {
  const t = useT()
  const today = dayIn(new Date().toISOString(), zone)
  const shown = date ?? today
  const whose = workflow === undefined ? t('map.zones') : zone
  const { data, error, refetch } = useQuery(dependencyGraph(project, workflow, shown, hops))
  const go = (day: string): void => onView({ date: day === today ? undefined : day })
  return (
    <div className="stack fill dependency-map">
      <div className="row">
        <Button size="small" icon={<LeftOutlined />} aria-label={t('map.before')} onClick={() => go(dayAfter(shown, -1))} />
        <Input type="date" size="small" className="map-date" aria-label={t('map.date', { zone: whose })} value={shown} onChange={(event) => event.target.value && go(event.target.value)} />
        <Button size="small" icon={<RightOutlined />} aria-label={t('map.after')} onClick={() => go(dayAfter(shown, 1))} />
        {shown === today ? null : <Button size="small" onClick={() => go(today)}>{t('map.today')}</Button>}
        <span className="dim small">{whose}</span>
        <span className="grow" />
        <Select size="small" className="filter-short" aria-label={t('map.hops')} value={hops} onChange={(value) => onView({ hops: value === 2 ? undefined : value })} options={HOPS.map((value) => ({ value, label: t('map.steps', { count: value }) }))} />
      </div>
      {error && !data ? <Trouble error={error} retry={() => void refetch()} /> : null}
      {!data && !error ? <Loading rows={8} /> : null}
      {data ? <Parts graph={data} home={project} zone={zone} onRun={onRun} isOne={workflow !== undefined} /> : null}
    </div>
  )
}

function Parts({ graph, home, zone, onRun, isOne }: { graph: DependencyGraph; home: string; zone: string; onRun: (id: number) => void; isOne: boolean }) {
  const t = useT()
  const [chosen, setChosen] = useState<string>()
  const rows = useMemo(() => rowsOf(graph), [graph])
  const dayOf = useCallback((row: Row, iso: string): string => dayIn(iso, row.timezone ?? zone), [zone])
  const picture = useMemo(
    () => pictureOf(rows, home, (row) => (row.is_known ? [dayOf(row, row.since) === graph.date ? '' : dayOf(row, row.since), row.state === null ? t('map.noRun') : ''].filter(Boolean).join(' · ') : t('map.unknown'))),
    [rows, home, dayOf, graph.date, t],
  )
  const critical = useMemo(() => new Set(graph.critical), [graph])
  const refused = graph.edges.filter((edge) => !edge.is_allowed)
  if (!graph.edges.length) return <Empty title={isOne ? t('map.nobody') : t('map.nobodyHere')}>{t('map.nobody.detail')}</Empty>
  const waits = (row: Row, source: string): string => {
    const look = row.looks.find((one) => one.source === source)
    if (!look) return source
    const { other } = look
    return `${source} (${[...look.dates, ...(other ? [dayOf(row, other.since), other.run ? t(`state.${other.run.state}`) : t('map.noRun')] : [])].join(' · ')})`
  }
  const columns: Column<Row>[] = [
    { key: 'workflow', title: t('map.workflow'), width: 'minmax(150px, 1.4fr)', render: (row) => <span className="row tight">{row.is_known ? <Link className="cut" to="/projects/$project/workflows/$name" params={{ project: row.project, name: row.workflow }}>{row.project === home ? row.workflow : row.id}</Link> : <span className="cut">{row.id}</span>}{row.isCritical ? <Tag color="warning">{t('map.critical')}</Tag> : null}</span> },
    { key: 'state', title: t('common.state'), width: 'minmax(110px, 150px)', render: (row) => (row.state ? <StateMark state={row.state} /> : <span className="dim">{row.is_known ? t('map.noRun') : t('map.unknown')}</span>) },
    { key: 'run', title: t('map.run'), width: '96px', render: (row) => (row.runs[0] ? <Link className="num" to="/runs/$id" params={{ id: String(row.runs[0].id) }}>#{row.runs[0].id}{row.runs.length > 1 ? ` +${row.runs.length - 1}` : ''}</Link> : null) },
    { key: 'day', title: t('map.day'), width: '120px', hide: 'narrow', render: (row) => <span className="num" title={row.timezone ?? zone}>{dayOf(row, row.since)}</span> },
    { key: 'lasted', title: t('common.duration'), width: '100px', hide: 'narrow', render: (row) => (row.runs[0] ? <Lasting from={row.runs[0].started_at} to={row.runs[0].finished_at} /> : null) },
    { key: 'waits', title: t('map.waitsFor'), width: 'minmax(120px, 2fr)', hide: 'medium', render: (row) => <span className="cut dim">{row.waitsFor.map((source) => waits(row, source)).join(', ')}{row.hidden ? ` · ${t('map.hidden', { count: row.hidden })}` : ''}</span> },
  ]
  return (
    <>
      {graph.is_cut ? <Alert type="info" showIcon title={t('map.cut')} /> : null}
      {refused.length ? <Alert type="warning" showIcon title={t('map.refused', { names: refused.map((edge) => `${edge.source} → ${edge.target}`).join(', ') })} /> : null}
      <div className="graph-frame replay-graph"><Graph tasks={picture} chosen={chosen} onChoose={setChosen} critical={critical} finds={t('map.find')} /></div>
      <DataTable label={t('map.label')} rows={rows} columns={columns} rowKey={(row) => row.id} rowHeight={40} isChosen={(row) => row.id === chosen} onOpen={(row) => (row.runs[0] ? onRun(row.runs[0].id) : setChosen(row.id))} />
    </>
  )
}
