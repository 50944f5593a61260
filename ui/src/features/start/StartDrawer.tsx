/** Starts a workflow: typed parameters, a logical time with its zone, chosen tasks. */
import { useQuery } from '@tanstack/react-query'
import { Button, Drawer, Form, Input, InputNumber, Segmented, Select, Switch } from 'antd'
import { useState } from 'react'
import type { CommandIn } from '@/api/types'
import { rerun, type Mode } from '@/entities/commands'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { workflow as workflowOf } from '@/entities/queries'
import { useSend } from '@/entities/sending'
import { useNamed, useT } from '@/shared/i18n'
import { instantOf } from '@/shared/time/format'
import { useZone } from '@/shared/time/Time'
import { useWidth } from '@/shared/ui/DataTable'
import { Loading } from '@/shared/ui/parts'
import { given, mistakeOf, parametersOf, type Parameter } from './values'

const PRIORITIES = ['HIGHEST', 'HIGH', 'MEDIUM', 'LOW', 'LOWEST'] as const

interface Props {
  project: string
  name: string
  onClose: () => void
  onStarted: (id: number) => void
}

interface Spec {
  parameters?: unknown
  timezone?: string
  priority?: string
  tasks?: { name: string; depends_on?: string[] }[]
}

export function StartDrawer({ project, name, onClose, onStarted }: Props) {
  const t = useT()
  const width = useWidth()
  const { data, error } = useQuery(workflowOf(project, name))
  return (
    <Drawer open onClose={onClose} size={Math.min(width, 520)} title={t('start.title', { name })} destroyOnHidden>
      {error ? <Trouble error={error} /> : null}
      {data ? <StartForm project={project} name={name} spec={data.definition} onClose={onClose} onStarted={onStarted} /> : <Loading />}
    </Drawer>
  )
}

function StartForm({ project, name, spec, onClose, onStarted }: Props & { spec: Spec & Record<string, unknown> }) {
  const t = useT()
  const named = useNamed()
  const refusal = useRefusal('run.operate', project)
  const send = useSend()
  const zone = useZone(spec.timezone ?? 'UTC')
  const [values, setValues] = useState<Record<string, string | undefined>>({})
  const [time, setTime] = useState('')
  const [priority, setPriority] = useState<CommandIn['priority']>()
  const [chosen, setChosen] = useState<string[]>([])
  const [mode, setMode] = useState<Mode>('only')
  const [isTried, setTried] = useState(false)
  const [isSending, setSending] = useState(false)
  const parameters = parametersOf(spec)
  const tasks = (spec.tasks ?? []).map((task) => ({ name: task.name, state: 'WAITING', dependsOn: task.depends_on ?? [] }))
  const count = chosen.length ? rerun(tasks, chosen, mode).direct.length : tasks.length
  const mistakes = parameters.map((one) => mistakeOf(one, values[one.name]))
  const start = async (): Promise<void> => {
    setTried(true)
    if (mistakes.some(Boolean)) return
    setSending(true)
    const outcome = await send({
      type: 'START',
      project,
      workflow: name,
      parameters: given(values),
      ...(time ? { logical_time: instantOf(time, zone) } : {}),
      ...(priority ? { priority } : {}),
      ...(chosen.length ? { tasks: chosen, mode } : {}),
    })
    setSending(false)
    if (outcome?.result_instance_id) onStarted(outcome.result_instance_id)
    else if (outcome) onClose()
  }
  return (
    <Form layout="vertical" onFinish={() => void start()} requiredMark={false}>
      <h2 className="form-head">{t('start.parameters')}</h2>
      {parameters.length ? null : <p className="dim">{t('start.noParameters')}</p>}
      {parameters.map((one, index) => {
        const mistake = isTried || values[one.name] ? mistakes[index] : null
        return (
          <Form.Item
            key={one.name}
            label={<><code>{one.name}</code><span className="dim form-type">{one.type}{one.standard === null ? '' : ` · ${t('common.optional')}`}</span></>}
            extra={one.description || undefined}
            htmlFor={`p-${one.name}`}
            {...(mistake ? { validateStatus: 'error' as const, help: t(`start.${mistake}`) } : {})}
          >
            <Value parameter={one} value={values[one.name]} onChange={(value) => setValues((old) => ({ ...old, [one.name]: value }))} />
          </Form.Item>
        )
      })}
      <h2 className="form-head">{t('attempt.details')}</h2>
      <Form.Item label={`${t('start.logicalTime')} (${zone})`} extra={t('start.logicalHint')} htmlFor="logical">
        <Input id="logical" type="datetime-local" value={time} onChange={(event) => setTime(event.target.value)} />
      </Form.Item>
      <Form.Item label={t('start.priority')} htmlFor="priority">
        <Select<NonNullable<CommandIn['priority']> | undefined>
          id="priority"
          allowClear
          value={priority ?? undefined}
          onChange={(value) => setPriority(value)}
          placeholder={t('start.priorityDefault', { value: spec.priority ?? 'MEDIUM' })}
          options={PRIORITIES.map((value) => ({ value, label: value }))}
        />
      </Form.Item>
      <Form.Item label={t('start.tasks')} htmlFor="tasks">
        <Select id="tasks" mode="multiple" allowClear value={chosen} onChange={setChosen} placeholder={t('start.allTasks')} options={tasks.map(({ name: value }) => ({ value, label: value }))} />
      </Form.Item>
      {chosen.length ? (
        <Form.Item label={t('start.mode')}>
          <Segmented<Mode> value={mode} onChange={setMode} options={(['only', 'upstream', 'downstream'] as const).map((value) => ({ value, label: named('mode', value) }))} />
        </Form.Item>
      ) : null}
      <div className="form-foot">
        <span className="dim">{t('start.preview', { count })}</span>
        <span className="grow" />
        <Button onClick={onClose}>{t('common.cancel')}</Button>
        <Act refusal={refusal} type="primary" htmlType="submit" loading={isSending}>{t('start.submit')}</Act>
      </div>
    </Form>
  )
}

function Value({ parameter, value, onChange }: { parameter: Parameter; value: string | undefined; onChange: (value: string | undefined) => void }) {
  const t = useT()
  const { type, standard } = parameter
  const id = `p-${parameter.name}`
  const placeholder = standard === null ? '' : t('start.default', { value: standard })
  if (type === 'boolean') {
    return <Switch id={id} checked={(value ?? standard) === 'true'} onChange={(on) => onChange(String(on))} />
  }
  if (type === 'integer' || type === 'number') {
    return <InputNumber id={id} stringMode className="full" value={value ?? null} placeholder={placeholder} onChange={(next) => onChange(next === null ? undefined : String(next))} />
  }
  if (type === 'date' && (value !== undefined || standard === null)) {
    return <Input id={id} type="date" value={value ?? ''} onChange={(event) => onChange(event.target.value || undefined)} />
  }
  return <Input id={id} value={value ?? ''} placeholder={placeholder} onChange={(event) => onChange(event.target.value || undefined)} />
}
