/** Asks before a command is sent, showing which tasks it touches. */
import { Input, Modal, Segmented } from 'antd'
import { useState } from 'react'
import type { CommandIn, InstanceDetail } from '@/api/types'
import { affected, rerun, type Mode, type RunCommand, type TaskCommand, type TaskNow } from '@/entities/commands'
import { StateMark } from '@/entities/marks'
import { useNamed, useT } from '@/shared/i18n'

export type Asked = { command: RunCommand } | { command: TaskCommand; task: string; id: number }
const MOST = 12
const DANGEROUS = new Set(['STOP', 'KILL_TASK', 'FORCE_SUCCESS'])

interface Props {
  run: InstanceDetail
  asked: Asked
  onSend: (command: CommandIn) => Promise<void>
  onClose: () => void
}

export function Confirm({ run, asked, onSend, onClose }: Props) {
  const t = useT()
  const named = useNamed()
  const [mode, setMode] = useState<Mode>('downstream')
  const [reason, setReason] = useState('')
  const [isSending, setSending] = useState(false)
  const tasks: TaskNow[] = run.tasks.map((task) => ({ name: task.task, state: task.state, dependsOn: task.depends_on }))
  const { command } = asked
  const touched =
    'task' in asked
      ? command === 'RERUN_TASKS'
        ? rerun(tasks, [asked.task], mode)
        : { direct: [asked.task], behind: [] }
      : affected(asked.command, tasks)
  const send = (): void => {
    setSending(true)
    void onSend(bodyOf(run.id, asked, mode, reason)).finally(onClose)
  }
  const name = named('command', command)
  return (
    <Modal
      open
      title={`${name} · ${run.workflow} #${run.id}`}
      okText={name}
      cancelText={t('common.cancel')}
      okButtonProps={{ danger: DANGEROUS.has(command), disabled: command === 'FORCE_SUCCESS' && !reason.trim() }}
      confirmLoading={isSending}
      onOk={send}
      onCancel={onClose}
    >
      <p>{named('command', `${command}.what`)}</p>
      {command === 'RERUN_TASKS' ? (
        <Segmented<Mode>
          value={mode}
          onChange={setMode}
          options={(['only', 'upstream', 'downstream'] as const).map((value) => ({ value, label: named('mode', value) }))}
        />
      ) : null}
      <TaskNames tasks={tasks} names={touched.direct} />
      {touched.behind.length ? (
        <>
          <p className="dim">{t('command.behind')}</p>
          <TaskNames tasks={tasks} names={touched.behind} />
        </>
      ) : null}
      {command === 'FORCE_SUCCESS' ? (
        <Input.TextArea rows={2} placeholder={t('command.reason')} aria-label={t('command.reason')} value={reason} onChange={(event) => setReason(event.target.value)} />
      ) : null}
    </Modal>
  )
}

function TaskNames({ tasks, names }: { tasks: readonly TaskNow[]; names: readonly string[] }) {
  const t = useT()
  if (!names.length) return <p className="dim">{t('command.nothing')}</p>
  const states = new Map(tasks.map((task) => [task.name, task.state]))
  return (
    <ul className="touched" data-touched={names.length}>
      {names.slice(0, MOST).map((name) => (
        <li key={name}>
          <StateMark state={states.get(name) ?? 'WAITING'} bare /> <span className="mono">{name}</span>
        </li>
      ))}
      {names.length > MOST ? <li className="dim">{t('command.others', { count: names.length - MOST })}</li> : null}
    </ul>
  )
}

function bodyOf(run: number, asked: Asked, mode: Mode, reason: string): CommandIn {
  if (!('task' in asked)) return { type: asked.command, instance_id: run }
  if (asked.command === 'RERUN_TASKS') return { type: asked.command, instance_id: run, tasks: [asked.task], mode }
  if (asked.command === 'FORCE_SUCCESS') return { type: asked.command, task_instance_id: asked.id, reason: reason.trim() }
  return { type: asked.command, task_instance_id: asked.id }
}
