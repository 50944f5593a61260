/** One workflow: what it does, when it runs, how it changed. */
import { CaretRightOutlined, EditOutlined } from '@ant-design/icons'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Alert, Button, Tabs, Tag } from 'antd'
import { toString as cronText } from 'cronstrue/dist/cronstrue-i18n'
import { lazy, Suspense, useEffect, useMemo, useState, type ReactNode } from 'react'
import { api, take } from '@/api/client'
import type { FireTime, Schedule } from '@/api/types'
import { useRows } from '@/entities/lists'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { preview as previewOf, runs as runsOf, version as versionOf, workflow as workflowOf, workflowSchedules } from '@/entities/queries'
import { RunTable } from '@/entities/RunTable'
import { useAsk, useDo } from '@/entities/saving'
import { WorkflowGraph } from '@/entities/WorkflowGraph'
import type { PictureTask } from '@/graph/Graph'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { timeText } from '@/shared/time/format'
import { Time } from '@/shared/time/Time'
import { Code, Empty, Facts, Loading, PageHead, Panel } from '@/shared/ui/parts'
import { Versions } from './Versions'

// What looks back is fetched when it is opened.
const GridView = lazy(async () => ({ default: (await import('./past/GridView')).GridView }))
const CalendarView = lazy(async () => ({ default: (await import('./past/CalendarView')).CalendarView }))

const DependencyMap = lazy(async () => ({ default: (await import('@/entities/DependencyMap')).DependencyMap }))

const Settings = lazy(async () => ({ default: (await import('./Settings')).Settings }))

export type WorkflowTab = 'settings' | 'dependencies' | 'graph' | 'grid' | 'calendar' | 'definition' | 'runs' | 'schedules' | 'backfills' | 'versions'

interface Props {
  project: string
  name: string
  tab: WorkflowTab | undefined
  version: number | undefined
  chosen: string | undefined
  year: number | undefined
  day: string | undefined
  /** Of the tab of dependencies: the logical day, and how many steps to go. */
  date: string | undefined
  hops: number | undefined
  onView: (to: { date?: string | undefined; hops?: number | undefined; tab?: WorkflowTab | undefined; version?: number | undefined; sel?: string | undefined; year?: number | undefined; day?: string | undefined }) => void
  onStart: () => void
  onRun: (id: number, task?: string) => void
  onPlan: (day: string) => void
  /** The tab of its backfills. */
  backfills: ReactNode
}

interface TaskText {
  name: string
  type: string
  depends_on?: string[]
  description?: string
  [key: string]: unknown
}

export function WorkflowPage({ project, name, tab, version, chosen, year, day, date, hops, onView, onStart, onRun, onPlan, backfills }: Props) {
  const t = useT()
  const navigate = useNavigate()
  const newest = useQuery(workflowOf(project, name))
  const isOld = version !== undefined && version !== newest.data?.version
  const old = useQuery({ ...versionOf(project, name, version ?? 0), enabled: isOld && newest.data !== undefined })
  const refusal = useRefusal('run.operate', project)
  if (newest.error && !newest.data) return <Trouble error={newest.error} retry={() => void newest.refetch()} />
  if (!newest.data) return <Loading rows={12} />
  const definition = isOld ? old.data?.definition : newest.data.definition
  const zone = typeof newest.data.definition.timezone === 'string' ? newest.data.definition.timezone : 'UTC'
  return (
    <div className="page-fill">
      <PageHead crumbs={<Link to="/workflows" search={{ project }}>{project}</Link>} title={name} mark={<Tag className="num">v{version ?? newest.data.version}</Tag>}>
        <Link className="head-link" to="/insight" search={{ project, workflow: `${project}/${name}`, tab: 'slower' as const }}>{t('nav.insight')}</Link>
        <Button icon={<EditOutlined />} onClick={() => void navigate({ to: '/projects/$project/workflows/$name/edit', params: { project, name } })}>{t('workflow.edit')}</Button>
        <Act refusal={refusal} type="primary" icon={<CaretRightOutlined />} onClick={onStart}>{t('workflows.start')}</Act>
      </PageHead>
      {newest.data.description ? <p className="lead">{newest.data.description}</p> : null}
      {isOld ? <Alert type="info" title={t('workflow.isOld', { version })} action={<Button size="small" onClick={() => onView({ version: undefined })}>{t('workflow.showNewest')}</Button>} /> : null}
      {old.error ? <Trouble error={old.error} /> : null}
      <Tabs
        className="fill-tabs"
        activeKey={tab ?? 'graph'}
        onChange={(key) => onView({ tab: key as WorkflowTab })}
        destroyOnHidden
        items={[
          { key: 'graph', label: t('workflow.graph'), children: definition ? <GraphTab project={project} name={name} definition={definition} chosen={chosen} onChoose={(sel) => onView({ sel })} /> : <Loading /> },
          { key: 'grid', label: t('workflow.grid'), children: <Suspense fallback={<Loading rows={10} />}><GridView project={project} name={name} zone={zone} onOpen={onRun} /></Suspense> },
          { key: 'calendar', label: t('workflow.days'), children: <Suspense fallback={<Loading rows={10} />}><CalendarView project={project} name={name} zone={zone} year={year} day={day} onView={onView} onRun={onRun} onPlan={onPlan} /></Suspense> },
          { key: 'definition', label: t('workflow.definition'), children: definition ? <DefinitionText definition={definition} /> : <Loading /> },
          { key: 'runs', label: t('workflow.runs'), children: <RunsTab project={project} name={name} onRun={onRun} /> },
          { key: 'schedules', label: t('workflow.schedules'), children: <Schedules project={project} name={name} /> },
          { key: 'backfills', label: t('workflow.backfills'), children: backfills },
          { key: 'settings', label: t('workflow.settings'), children: definition ? <Suspense fallback={<Loading rows={10} />}><Settings project={project} name={name} definition={definition} onEdit={() => void navigate({ to: '/projects/$project/workflows/$name/edit', params: { project, name }, search: { view: 'settings' as const } })} /></Suspense> : <Loading /> },
          { key: 'dependencies', label: t('map.dependencies'), children: <Suspense fallback={<Loading rows={10} />}><DependencyMap project={project} workflow={name} zone={zone} date={date} hops={hops} onView={onView} onRun={onRun} /></Suspense> },
          { key: 'versions', label: t('workflow.versions'), children: <Versions project={project} name={name} shown={version ?? newest.data.version} onShow={(number) => onView({ version: number, tab: 'graph' })} /> },
        ]}
      />
    </div>
  )
}

function GraphTab({ project, name, definition, chosen, onChoose }: { project: string; name: string; definition: Record<string, unknown>; chosen: string | undefined; onChoose: (name: string) => void }) {
  const t = useT()
  const tasks = useMemo(() => (definition.tasks ?? []) as TaskText[], [definition])
  const picture = useMemo(() => tasks.map((task): PictureTask => ({ name: task.name, type: task.type, dependsOn: task.depends_on ?? [], state: null })), [tasks])
  const one = tasks.find((task) => task.name === chosen)
  return (
    <div className="graph-frame">
      <WorkflowGraph project={project} workflow={name} tasks={picture} chosen={chosen} onChoose={onChoose} />
      {one ? (
        <aside className="inspector" aria-label={one.name}>
          <h2 className="mono">{one.name}</h2>
          {one.description ? <p className="dim">{one.description}</p> : null}
          <Facts items={[[t('common.type'), one.type], [t('workflow.dependsOn'), one.depends_on?.join(', ') ?? '–']]} />
          <DefinitionText definition={Object.fromEntries(Object.entries(one).filter(([key]) => !['name', 'type', 'depends_on', 'description'].includes(key)))} />
        </aside>
      ) : null}
    </div>
  )
}

function DefinitionText({ definition }: { definition: Record<string, unknown> }) {
  const [text, setText] = useState<string | null>(null)
  useEffect(() => {
    let isGone = false
    void import('yaml').then(({ stringify }) => {
      if (!isGone) setText(stringify(definition, { lineWidth: 100 }))
    })
    return () => {
      isGone = true
    }
  }, [definition])
  return text === null ? <Loading rows={8} /> : <Code text={text} />
}

function RunsTab({ project, name, onRun }: { project: string; name: string; onRun: (id: number) => void }) {
  const t = useT()
  const list = useRows(runsOf({ project, workflow: name }))
  const { rows } = list
  if (list.error) return <Trouble error={list.error} retry={list.again} />
  if (list.isPending) return <Loading />
  if (!rows.length) return <Empty title={t('workflow.noRuns')} />
  return <RunTable bare rows={rows} onOpen={onRun} onEnd={list.more} footer={<span className="dim num">{t('common.rows', { count: rows.length })}{list.hasMore ? ' +' : ''}</span>} />
}

function Schedules({ project, name }: { project: string; name: string }) {
  const t = useT()
  const { data, error, refetch } = useQuery(workflowSchedules(project, name))
  if (error) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading />
  if (!data.items.length) return <Empty title={t('workflow.noSchedules')} />
  return (
    <div className="stack">
      {data.items.map((one) => (
        <SchedulePanel key={one.id} schedule={one} />
      ))}
    </div>
  )
}

function SchedulePanel({ schedule }: { schedule: Schedule }) {
  const t = useT()
  const { data } = useQuery(previewOf(schedule.id))
  const mark = schedule.paused_at ? <Tag>{t('schedule.paused')}</Tag> : <Tag color={schedule.enabled ? 'success' : 'default'}>{schedule.enabled ? t('workflow.enabled') : t('workflow.disabled')}</Tag>
  return (
    <Panel title={<code>{schedule.cron}</code>} aside={<span className="row">{mark}<PauseSchedule schedule={schedule} /></span>}>
      <div className="columns">
        <div>
          <p>{useCronText(schedule.cron)}</p>
          <Facts
            items={[
              [t('workflow.zone'), schedule.timezone],
              [t('workflow.missed'), schedule.missed],
              ...(schedule.paused_at ? ([[t('schedule.pausedSince'), <Time key="p" at={schedule.paused_at} zone={schedule.timezone} />]] as [string, ReactNode][]) : []),
              ...(schedule.calendar ? ([[t('workflow.calendar'), schedule.calendar]] as [string, string][]) : []),
              ...Object.entries(schedule.parameters).map(([key, value]): [React.ReactNode, React.ReactNode] => [<code key="k">{key}</code>, <code key="v">{value}</code>]),
            ]}
          />
        </div>
        <div>
          <h3>{t('workflow.fires')}</h3>
          {data ? <Fires times={data.fire_times} zone={schedule.timezone} /> : <Loading rows={4} />}
        </div>
      </div>
    </Panel>
  )
}

/** Holds a schedule back without publishing anything, or lets it fire again. */
function PauseSchedule({ schedule }: { schedule: Schedule }) {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal('run.operate', schedule.project)
  const params = { params: { path: { schedule_id: schedule.id } } }
  const renew = [['schedules'], ['workflows']]
  if (schedule.paused_at) {
    return <Act size="small" refusal={refusal} onClick={() => void act(() => take(api.POST('/api/v1/schedules/{schedule_id}/resume', params)), t('schedule.didResume'), renew)}>{t('schedule.resume')}</Act>
  }
  const pause = (): void =>
    ask({
      title: t('schedule.pause.ask', { cron: schedule.cron }),
      text: t('schedule.pause.text'),
      ok: t('schedule.pause'),
      danger: false,
      act: () => act(() => take(api.POST('/api/v1/schedules/{schedule_id}/pause', params)), t('schedule.didPause'), renew),
    })
  return <Act size="small" refusal={refusal} onClick={pause}>{t('schedule.pause')}…</Act>
}

function useCronText(cron: string): string {
  const { language } = useSettings()
  try {
    // Quartz's day of the week begins with Sunday as 1.
    return cronText(cron, { locale: language === 'zh' ? 'zh_CN' : 'en', dayOfWeekStartIndexZero: false, use24HourTimeFormat: true })
  } catch {
    return ''
  }
}

function Fires({ times, zone }: { times: readonly FireTime[]; zone: string }) {
  const { language } = useSettings()
  return (
    <ol className="fires">
      {times.slice(0, 10).map((time, index) => (
        <li key={index} className={time.fires ? undefined : 'left-out'}>
          <span className="num">{timeText(time.utc, zone, language)}</span>
          {time.marks.map((mark) => (
            <Tag key={mark} color="warning">{mark}</Tag>
          ))}
        </li>
      ))}
    </ol>
  )
}
