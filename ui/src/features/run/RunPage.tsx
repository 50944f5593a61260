/** A run: what happens, and why something does not. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Button, Dropdown, Progress, Tabs } from 'antd'
import { lazy, Suspense, useMemo, useState, type ReactNode } from 'react'
import type { InstanceDetail, InstanceTask } from '@/api/types'
import { takes, type RunCommand } from '@/entities/commands'
import { Act, Findings, StateMark, Trouble, useRefusal } from '@/entities/marks'
import { run as runOf, whyRun } from '@/entities/queries'
import { useSend } from '@/entities/sending'
import { hasEnded, taskHasEnded } from '@/entities/states'
import { WorkflowGraph } from '@/entities/WorkflowGraph'
import type { PictureTask } from '@/graph/Graph'
import { criticalPath } from '@/graph/timeline'
import { useNamed, useSaid, useT } from '@/shared/i18n'
import '@/shared/i18n/run'
import { useKeys } from '@/shared/keys'
import { durationText } from '@/shared/time/format'
import { Lasting, Time } from '@/shared/time/Time'
import { useWidth } from '@/shared/ui/DataTable'
import { Empty, Facts, Loading, PageHead, Panel } from '@/shared/ui/parts'
import { CompareWith } from './CompareWith'
import { Confirm, type Asked } from './Confirm'
import { Events } from './Events'
import { Expected } from './Expected'
import { Gantt, spansOf } from './Gantt'
import { Tasks } from './Tasks'

const Baseline = lazy(async () => ({ default: (await import('./Baseline')).Baseline }))

export type RunTab = 'graph' | 'gantt' | 'tasks' | 'baseline' | 'parameters' | 'events'
const COMMANDS: readonly RunCommand[] = ['PAUSE', 'RESUME', 'STOP', 'RECOVER', 'RERUN']

interface Props {
  id: number
  tab: RunTab | undefined
  task: string | undefined
  onTab: (tab: RunTab) => void
  onTask: (task: string) => void
  onRun: (id: number) => void
  /** The drawer of the task that the address names; it gets the buttons that act on an attempt. */
  drawer: (run: InstanceDetail, actions: (task: { id: number; task: string; state: string }) => ReactNode) => ReactNode
}

export function RunPage(props: Props) {
  const { data, error, refetch } = useQuery(runOf(props.id))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  return data ? <Run {...props} run={data} /> : <Loading rows={12} />
}

function Run({ run, tab, task, onTab, onTask, onRun, drawer }: Props & { run: InstanceDetail }) {
  const t = useT()
  const said = useSaid()
  const refusal = useRefusal('run.operate', run.project)
  const [asked, setAsked] = useState<Asked | null>(null)
  const send = useSend()
  const width = useWidth()
  const ask = (command: RunCommand) => (takes(command, run.state) && !refusal ? () => setAsked({ command }) : undefined)
  useKeys({ p: ask('PAUSE') ?? ask('RESUME'), r: ask('RECOVER') })
  const now = hasEnded(run.state) ? Date.parse(run.finished_at ?? run.created_at) : Date.now()
  const critical = useMemo(() => new Set(hasEnded(run.state) ? criticalPath(spansOf(run.tasks), now) : []), [run, now])
  const picture = useMemo(() => run.tasks.map(pictureOf), [run.tasks])
  const actions = (one: { id: number; task: string; state: string }) => (
    <TaskActions run={run} task={one} refusal={refusal} onAsk={setAsked} />
  )
  return (
    <div className="page-fill">
      <PageHead
        crumbs={<Crumbs run={run} />}
        title={<>{run.workflow} <span className="dim num">#{run.id}</span></>}
        mark={<StateMark state={run.state} />}
      >
        <Link className="head-link" to="/alerts" search={{ project: run.project, tab: 'why' as const, run: run.id }}>{t('nav.alerts')}</Link>
        <CompareWith run={run} />
        <RunActions run={run} refusal={refusal} isNarrow={width < 760} onAsk={(command) => setAsked({ command })} />
      </PageHead>
      <RunLine run={run} />
      {run.reason ? <p className={`reason ${run.state === 'FAILED' ? 'bad' : ''}`}>{said(run.reason_said, run.reason)}</p> : null}
      <Tabs
        className="fill-tabs"
        activeKey={tab ?? 'graph'}
        onChange={(key) => onTab(key as RunTab)}
        destroyOnHidden
        items={[
          { key: 'graph', label: t('run.graph'), children: <div className="graph-frame"><WorkflowGraph project={run.project} workflow={run.workflow} tasks={picture} chosen={task} onChoose={onTask} critical={critical} />{hasEnded(run.state) ? null : <WhyPanel id={run.id} />}</div> },
          { key: 'gantt', label: t('run.gantt'), children: <Gantt tasks={run.tasks} zone={run.timezone} onChoose={onTask} /> },
          { key: 'tasks', label: t('run.tasks'), children: <Tasks run={run} chosen={task} onTask={onTask} refusal={refusal} /> },
          { key: 'baseline', label: t('run.baseline'), children: <Suspense fallback={<Loading rows={8} />}><Baseline run={run} chosen={task} onTask={onTask} /></Suspense> },
          { key: 'parameters', label: t('run.parameters'), children: <Parameters run={run} /> },
          { key: 'events', label: t('run.events'), children: <Events run={run.id} project={run.project} workflow={run.workflow} zone={run.timezone} tasks={picture} chosen={task} onTask={onTask} /> },
        ]}
      />
      {drawer(run, actions)}
      {asked ? (
        <Confirm
          key={asked.command}
          run={run}
          asked={asked}
          onClose={() => setAsked(null)}
          onSend={async (command) => {
            const done = await send(command)
            if (done?.result_instance_id && done.result_instance_id !== run.id) onRun(done.result_instance_id)
          }}
        />
      ) : null}
    </div>
  )
}

function Crumbs({ run }: { run: InstanceDetail }) {
  const t = useT()
  return (
    <>
      <Link to="/workflows" search={{ project: run.project }}>{run.project}</Link>
      <span aria-hidden>/</span>
      <Link to="/projects/$project/workflows/$name" params={{ project: run.project, name: run.workflow }}>{run.workflow}</Link>
      {run.parent ? <Link to="/runs/$id" params={{ id: String(run.parent.instance_id) }}>{t('run.parent', { id: run.parent.instance_id })}</Link> : null}
      {run.rerun_of ? <Link to="/runs/$id" params={{ id: String(run.rerun_of) }}>{t('run.rerunOf', { id: run.rerun_of })}</Link> : null}
    </>
  )
}

function RunLine({ run }: { run: InstanceDetail }) {
  const t = useT()
  const total = run.tasks.length
  const done = run.tasks.filter((task) => taskHasEnded(task.state)).length
  const failed = run.tasks.filter((task) => ['FAILED', 'LOST', 'KILLED'].includes(task.state)).length
  const label = t('run.done', { done, total })
  const isLate = run.is_late && !hasEnded(run.state) // the state is patched by events, the rest is read again
  return (
    <div className="run-line">
      <span className="run-progress">
        <Progress percent={total ? (100 * done) / total : 0} showInfo={false} size="small" status={failed ? 'exception' : run.state === 'SUCCEEDED' ? 'success' : 'normal'} aria-label={label} />
        <span className="num">{label}</span>
      </span>
      <span><span className="dim">{t('time.logical')}</span> <Time at={run.logical_time} zone={run.timezone} /></span>
      <span><span className="dim">{t('common.duration')}</span> <Lasting from={run.started_at} to={hasEnded(run.state) ? run.finished_at : null} /></span>
      <Expected run={run} />
      {run.deadline_at && <span className={isLate ? 'bad-text' : 'wide-only'}><span className="dim">{t(isLate ? 'run.late' : 'run.deadline')}</span> <Time at={run.deadline_at} zone={run.timezone} /></span>}
      <span className="wide-only"><span className="dim">{t('common.version')}</span> <Link className="num" to="/projects/$project/workflows/$name" params={{ project: run.project, name: run.workflow }} search={{ version: run.version }}>{run.version}</Link></span>
    </div>
  )
}

function RunActions({ run, refusal, isNarrow, onAsk }: { run: InstanceDetail; refusal: string | null; isNarrow: boolean; onAsk: (command: RunCommand) => void }) {
  const t = useT()
  const named = useNamed()
  const why = (command: RunCommand) => refusal ?? (takes(command, run.state) ? null : t('command.notNow', { state: named('state', run.state) }))
  const fitting = COMMANDS.filter((command) => takes(command, run.state))
  const first = fitting.find((command) => command === (run.state === 'FAILED' ? 'RECOVER' : command)) ?? 'RERUN'
  const others = COMMANDS.filter((command) => !isNarrow || command !== first)
  if (!isNarrow) {
    return others.map((command) => (
      <Act key={command} refusal={why(command)} type={command === first && run.state === 'FAILED' ? 'primary' : 'default'} danger={command === 'STOP'} onClick={() => onAsk(command)}>
        {named('command', command)}…
      </Act>
    ))
  }
  return (
    <>
      <Act refusal={why(first)} type="primary" onClick={() => onAsk(first)}>{named('command', first)}…</Act>
      <Dropdown trigger={['click']} menu={{ items: others.map((command) => ({ key: command, label: named('command', command), disabled: why(command) !== null, danger: command === 'STOP' })), onClick: ({ key }) => onAsk(key as RunCommand) }}>
        <Button aria-label={t('nav.menu')}>⋯</Button>
      </Dropdown>
    </>
  )
}

function TaskActions({ run, task, refusal, onAsk }: { run: InstanceDetail; task: { id: number; task: string; state: string }; refusal: string | null; onAsk: (asked: Asked) => void }) {
  const t = useT()
  const named = useNamed()
  const isNewest = run.tasks.some((one) => one.id === task.id)
  const notNow = t('command.notNow', { state: named('state', run.state) })
  const canKill = isNewest && !taskHasEnded(task.state) && ['RUNNING', 'PAUSING'].includes(run.state)
  const canForce = isNewest && ['FAILED', 'KILLED', 'LOST', 'DELAYED', 'BLOCKED', 'QUEUED'].includes(task.state) && ['RUNNING', 'PAUSING', 'FAILED'].includes(run.state)
  const canRerun = hasEnded(run.state)
  const { id } = task
  return (
    <>
      <Act size="small" refusal={refusal ?? (canRerun ? null : notNow)} onClick={() => onAsk({ command: 'RERUN_TASKS', task: task.task, id })}>{t('command.RERUN_TASKS')}…</Act>
      <Act size="small" danger refusal={refusal ?? (canKill ? null : notNow)} onClick={() => onAsk({ command: 'KILL_TASK', task: task.task, id })}>{t('command.KILL_TASK')}…</Act>
      <Act size="small" refusal={refusal ?? (canForce ? null : notNow)} onClick={() => onAsk({ command: 'FORCE_SUCCESS', task: task.task, id })}>{t('command.FORCE_SUCCESS')}…</Act>
    </>
  )
}

function WhyPanel({ id }: { id: number }) {
  const t = useT()
  const { data } = useQuery(whyRun(id))
  const waiting = data?.findings.filter((finding) => finding.waits) ?? []
  if (!waiting.length) return null
  return (
    <aside className="why-panel" aria-label={t('run.whyNot')}>
      <h2>{t('run.whyNot')}</h2>
      <Findings findings={waiting.slice(0, 6)} empty={t('run.noFindings')} />
    </aside>
  )
}

function Parameters({ run }: { run: InstanceDetail }) {
  const t = useT()
  const items = Object.entries(run.parameters)
  return (
    <div className="columns">
      <Panel title={t('run.parameters')}>
        {items.length ? <Facts items={items.map(([name, value]) => [<code key="n">{name}</code>, <code key="v" className="wrap-any">{value}</code>])} /> : <Empty title={t('run.noParameters')} />}
      </Panel>
      <Panel title={t('attempt.details')}>
        <Facts
          items={[
            [t('start.priority'), run.priority],
            [t('workflow.zone'), run.timezone],
            [t('common.created'), <Time key="c" at={run.created_at} zone={run.timezone} />],
            [t('common.started'), <Time key="s" at={run.started_at} zone={run.timezone} />],
            [t('run.title', { id: run.id }), t('run.by', { id: run.command_id })],
          ]}
        />
      </Panel>
    </div>
  )
}

function pictureOf(task: InstanceTask): PictureTask {
  const lasted = task.started_at && task.finished_at && taskHasEnded(task.state) ? durationText(Date.parse(task.finished_at) - Date.parse(task.started_at)) : ''
  const again = task.attempt > 1 ? `#${task.attempt}` : ''
  return { name: task.task, dependsOn: task.depends_on, type: task.type, state: task.state, note: [lasted, again].filter(Boolean).join(' · ') }
}
