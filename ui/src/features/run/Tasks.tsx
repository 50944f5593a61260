/** The tasks of a run as rows, and the same request to many of them. */
import { Button, Input } from 'antd'
import { useState } from 'react'
import type { InstanceDetail, InstanceTask } from '@/api/types'
import { BulkDialog, type BulkCommand } from '@/entities/Bulk'
import { Act, markOf } from '@/entities/marks'
import { taskHasEnded } from '@/entities/states'
import { useNamed, useSaid, useT } from '@/shared/i18n'
import { durationText } from '@/shared/time/format'
import { Lasting, useTimes } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'

const COMMANDS: readonly BulkCommand[] = ['RERUN_TASKS', 'KILL_TASK', 'FORCE_SUCCESS']
const MOST = 500 // ids of one request

export function Tasks({ run, chosen, onTask, refusal }: { run: InstanceDetail; chosen: string | undefined; onTask: (task: string) => void; refusal: string | null }) {
  const t = useT()
  const said = useSaid()
  const named = useNamed()
  const times = useTimes(run.timezone)
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
      title: <input type="checkbox" className="pick" checked={rows.length > 0 && rows.every((task) => picked.has(task.id))} onChange={(event) => setPicked(new Set(event.target.checked ? rows.map((task) => task.id) : []))} aria-label={t('bulk.chooseAll')} />,
      width: '20px',
      look: 'whole',
      render: (task) => <input type="checkbox" className="pick" checked={picked.has(task.id)} onChange={() => toggle(task.id)} aria-label={t('bulk.chooseTask', { name: task.task })} />,
    },
    { key: 'state', title: t('common.state'), width: '132px', look: 'whole', render: (task) => markOf(task.state, named('state', task.state)) },
    { key: 'name', title: t('common.name'), width: 'minmax(140px, 1.4fr)', look: 'whole', render: (task) => <button type="button" className="link mono cut" onClick={() => onTask(task.task)}>{task.task}</button> },
    { key: 'type', title: t('common.type'), width: '120px', hide: 'narrow', look: 'dim', render: (task) => task.type },
    { key: 'attempt', title: t('common.attempt'), width: '76px', hide: 'medium', look: 'num whole', render: (task) => task.attempt },
    { key: 'worker', title: t('common.worker'), width: 'minmax(120px, 1fr)', hide: 'medium', look: 'dim mono', render: (task) => task.worker ?? '–' },
    { key: 'started', title: t('common.started'), width: 'minmax(190px, 210px)', hide: 'narrow', look: 'whole', render: (task) => times(task.started_at) },
    { key: 'duration', title: t('common.duration'), width: '104px', look: 'num whole', render: (task) => (task.started_at && taskHasEnded(task.state) ? durationText(Date.parse(task.finished_at ?? task.started_at) - Date.parse(task.started_at)) : <Lasting from={task.started_at} to={null} />) },
    { key: 'reason', title: t('common.reason'), width: 'minmax(100px, 1.4fr)', hide: 'medium', look: 'dim', render: (task) => (task.reason ? <span title={task.reason}>{said(task.reason_said, task.reason)}</span> : task.exit_code ? t('attempt.exit', { code: task.exit_code }) : null) },
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
