/** The tasks of a run as rows, and the same request to many of them. */
import { Button, Checkbox, Input } from 'antd'
import { useState } from 'react'
import type { InstanceDetail, InstanceTask } from '@/api/types'
import { BulkDialog, type BulkCommand } from '@/entities/Bulk'
import { Act, StateMark } from '@/entities/marks'
import { taskHasEnded } from '@/entities/states'
import { useNamed, useSaid, useT } from '@/shared/i18n'
import { Lasting, Time } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'

const COMMANDS: readonly BulkCommand[] = ['RERUN_TASKS', 'KILL_TASK', 'FORCE_SUCCESS']
const MOST = 500 // ids of one request

export function Tasks({ run, chosen, onTask, refusal }: { run: InstanceDetail; chosen: string | undefined; onTask: (task: string) => void; refusal: string | null }) {
  const t = useT()
  const said = useSaid()
  const named = useNamed()
  const [wanted, setWanted] = useState('')
  const [picked, setPicked] = useState<ReadonlySet<number>>(new Set())
  const [asked, setAsked] = useState<BulkCommand | null>(null)
  const rows = run.tasks.filter((task) => `${task.task} ${task.type} ${task.state}`.toLowerCase().includes(wanted.toLowerCase()))
  const own = run.tasks.filter((task) => picked.has(task.id))
  const toggle = (id: number): void =>
    setPicked((old) => {
      const next = new Set(old)
      if (!next.delete(id)) next.add(id)
      return next
    })
  const columns: Column<InstanceTask>[] = [
    {
      key: 'choice',
      title: <Checkbox checked={rows.length > 0 && rows.every((task) => picked.has(task.id))} onChange={(event) => setPicked(new Set(event.target.checked ? rows.map((task) => task.id) : []))} aria-label={t('bulk.chooseAll')} />,
      width: '20px',
      render: (task) => <Checkbox checked={picked.has(task.id)} onChange={() => toggle(task.id)} aria-label={t('bulk.chooseTask', { name: task.task })} />,
    },
    { key: 'state', title: t('common.state'), width: '132px', render: (task) => <StateMark state={task.state} /> },
    { key: 'name', title: t('common.name'), width: 'minmax(140px, 1.4fr)', render: (task) => <button type="button" className="link mono cut" onClick={() => onTask(task.task)}>{task.task}</button> },
    { key: 'type', title: t('common.type'), width: '120px', hide: 'narrow', render: (task) => <span className="dim">{task.type}</span> },
    { key: 'attempt', title: t('common.attempt'), width: '76px', hide: 'medium', render: (task) => <span className="num">{task.attempt}</span> },
    { key: 'worker', title: t('common.worker'), width: 'minmax(120px, 1fr)', hide: 'medium', render: (task) => <span className="cut dim mono">{task.worker ?? '–'}</span> },
    { key: 'started', title: t('common.started'), width: 'minmax(190px, 210px)', hide: 'narrow', render: (task) => <Time at={task.started_at} zone={run.timezone} /> },
    { key: 'duration', title: t('common.duration'), width: '104px', render: (task) => <Lasting from={task.started_at} to={taskHasEnded(task.state) ? (task.finished_at ?? task.started_at) : null} /> },
    { key: 'reason', title: t('common.reason'), width: 'minmax(100px, 1.4fr)', hide: 'medium', render: (task) => <span className="cut dim" title={task.reason ?? ''}>{said(task.reason_said, task.reason) || (task.exit_code ? t('attempt.exit', { code: task.exit_code }) : '')}</span> },
  ]
  return (
    <div className="stack">
      <Input allowClear data-search className="filter-text" placeholder={t('run.filterTasks')} aria-label={t('run.filterTasks')} value={wanted} onChange={(event) => setWanted(event.target.value)} />
      {own.length ? (
        <div className="bulk-bar" role="toolbar" aria-label={t('bulk.actions')}>
          <strong className="num">{t('bulk.chosen', { count: own.length })}</strong>
          <span className="grow" />
          {COMMANDS.map((command) => <Act key={command} size="small" refusal={refusal} danger={command === 'KILL_TASK'} onClick={() => setAsked(command)}>{named('command', command)}…</Act>)}
          <Button size="small" type="text" onClick={() => setPicked(new Set())}>{t('common.clear')}</Button>
        </div>
      ) : null}
      {asked ? (
        <BulkDialog
          command={asked}
          target={{ ids: asked === 'RERUN_TASKS' ? [run.id] : own.slice(0, MOST).map((task) => task.id) }}
          {...(asked === 'RERUN_TASKS' ? { tasks: own.map((task) => task.task) } : {})}
          nameOf={(id) => (asked === 'RERUN_TASKS' ? `#${id} ${run.workflow}` : (run.tasks.find((task) => task.id === id)?.task ?? `#${id}`))}
          stateOf={(id) => (asked === 'RERUN_TASKS' ? run.state : run.tasks.find((task) => task.id === id)?.state)}
          onClose={() => { setAsked(null); setPicked(new Set()) }}
        />
      ) : null}
      <DataTable label={t('run.tasks')} rows={rows} columns={columns} rowKey={(task) => task.id} onOpen={(task) => onTask(task.task)} isChosen={(task) => task.task === chosen} rowHeight={36} footer={<span className="dim num">{t('common.rows', { count: rows.length })}</span>} />
    </div>
  )
}
