/** A backfill is planned first: what would run for which dates, and what is left out, and why. */
import { useQuery } from '@tanstack/react-query'
import { Alert, App, Button, Drawer, Form, Input, InputNumber, Segmented, Select } from 'antd'
import { useMemo, useRef, useState } from 'react'
import { api, take, type ApiProblem } from '@/api/client'
import type { Plan, PlannedRun } from '@/api/types'
import { Act, useRefusal } from '@/entities/marks'
import { workflow as workflowOf } from '@/entities/queries'
import { Problem } from '@/entities/saving'
import { useNamed, useT, type TextKey } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { DataTable, useWidth, type Column } from '@/shared/ui/DataTable'
import { parametersIn, requestOf, START, type PlanValues } from './plan'

interface Props {
  project: string
  name: string
  /** The dates to begin with. */
  day?: string | undefined
  onClose: () => void
  onStarted: (id: number) => void
}

const PRIORITIES = ['HIGHEST', 'HIGH', 'MEDIUM', 'LOW', 'LOWEST'] as const
const WAIT_S = 30

export function PlanDrawer({ project, name, day, onClose, onStarted }: Props) {
  const t = useT()
  const named = useNamed()
  const width = useWidth()
  const { message } = App.useApp()
  const refusal = useRefusal('run.operate', project)
  const { data: workflow } = useQuery(workflowOf(project, name))
  const [values, setValues] = useState<PlanValues>(day ? { ...START, from: day, to: day } : START)
  const [plan, setPlan] = useState<Plan | null>(null)
  const [error, setError] = useState<ApiProblem | null>(null)
  const [hint, setHint] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const key = useRef(crypto.randomUUID())
  const zone = typeof workflow?.definition.timezone === 'string' ? workflow.definition.timezone : 'UTC'
  const tasks = useMemo(() => ((workflow?.definition.tasks ?? []) as { name: string }[]).map((task) => task.name), [workflow])
  const set = (to: Partial<PlanValues>): void => {
    setValues((old) => ({ ...old, ...to }))
    setPlan(null) // it was of other values
    setHint(null)
  }
  const ask = async (isDry: boolean): Promise<void> => {
    const parameters = parametersIn(values.parameters)
    if (typeof parameters === 'number') return setHint(t('backfill.parameters.wrong', { line: parameters }))
    if (!values.from || !values.to) return setHint(t('backfill.needRange'))
    setBusy(true)
    setError(null)
    try {
      const { plan: found, command } = await take(
        api.POST('/api/v1/backfills', {
          params: { query: isDry ? { dry_run: true } : {}, header: isDry ? {} : { 'idempotency-key': key.current } },
          body: requestOf(project, name, values, parameters),
        }),
      )
      if (isDry) setPlan(found)
      if (!command) return
      const outcome = await take(api.GET('/api/v1/commands/{command_id}', { params: { path: { command_id: command.id }, query: { wait: WAIT_S } } }))
      if (outcome.state === 'REFUSED' || outcome.backfill_id === null) {
        setHint(outcome.reason ?? t('state.PENDING'))
        key.current = crypto.randomUUID()
      } else {
        void message.success(t('backfill.didStart'))
        onStarted(outcome.backfill_id)
      }
    } catch (thrown) {
      setError(thrown as ApiProblem)
      key.current = crypto.randomUUID()
    } finally {
      setBusy(false)
    }
  }
  const choices = <K extends string>(prefix: string, all: readonly K[]) => all.map((value) => ({ value, label: t(`${prefix}.${value}` as TextKey) }))
  const field = (label: string, id: string, child: React.ReactNode, extra?: string) => (
    <Form.Item label={label} htmlFor={id} extra={extra}>{child}</Form.Item>
  )
  return (
    <Drawer open onClose={onClose} size={Math.min(width, 760)} title={t('backfill.plan', { name })} destroyOnHidden>
      <Form layout="vertical" requiredMark={false} onFinish={() => void ask(plan === null)}>
        <h2 className="form-head">{t('backfill.dates')}</h2>
        <div className="pair">
          {field(t('backfill.from'), 'b-from', <Input id="b-from" type="date" value={values.from} onChange={(event) => set({ from: event.target.value })} />)}
          {field(t('backfill.to'), 'b-to', <Input id="b-to" type="date" value={values.to} onChange={(event) => set({ to: event.target.value })} />)}
        </div>
        <p className="dim form-note">{t('backfill.zone', { zone })}</p>
        <div className="pair">
          {field(t('backfill.by'), 'b-by', <Select id="b-by" value={values.by} onChange={(by) => set({ by })} options={choices('backfill.by', ['auto', 'schedule', 'day'] as const)} />)}
          {field(t('backfill.only'), 'b-only', <Select id="b-only" value={values.only} onChange={(only) => set({ only })} options={choices('backfill.only', ['all', 'missing', 'failed'] as const)} />)}
          {field(t('backfill.reprocess'), 'b-again', <Select id="b-again" value={values.reprocess} onChange={(reprocess) => set({ reprocess })} options={choices('backfill.reprocess', ['none', 'failed', 'all'] as const)} />)}
          {field(t('backfill.downstream'), 'b-down', <Select id="b-down" value={values.downstream} onChange={(downstream) => set({ downstream })} options={choices('backfill.downstream', ['none', 'direct', 'all'] as const)} />)}
        </div>
        <h2 className="form-head">{t('backfill.how')}</h2>
        <div className="pair">
          {field(t('backfill.parallel'), 'b-parallel', <InputNumber id="b-parallel" className="full" min={1} max={1000} value={values.parallel} onChange={(parallel) => set({ parallel: parallel ?? 1 })} />)}
          {field(t('backfill.order'), 'b-order', <Select id="b-order" value={values.order} onChange={(order) => set({ order })} options={choices('backfill.order', ['ascending', 'descending'] as const)} />)}
          {field(t('backfill.onFailure'), 'b-failure', <Select id="b-failure" value={values.onFailure} onChange={(onFailure) => set({ onFailure })} options={choices('backfill.onFailure', ['auto', 'stop', 'continue'] as const)} />)}
          {field(t('start.priority'), 'b-priority', <Select id="b-priority" allowClear value={values.priority} placeholder={t('backfill.priorityDefault')} onChange={(priority) => set({ priority })} options={PRIORITIES.map((value) => ({ value, label: value }))} />)}
        </div>
        {field(t('start.tasks'), 'b-tasks', <Select id="b-tasks" mode="multiple" allowClear value={values.tasks} placeholder={t('start.allTasks')} onChange={(chosen) => set({ tasks: chosen })} options={tasks.map((value) => ({ value, label: value }))} />)}
        {values.tasks.length ? <Form.Item label={t('start.mode')}><Segmented value={values.mode} onChange={(mode) => set({ mode })} options={(['only', 'upstream', 'downstream'] as const).map((value) => ({ value, label: named('mode', value) }))} /></Form.Item> : null}
        {field(t('backfill.parameters'), 'b-parameters', <Input.TextArea id="b-parameters" className="mono" autoSize={{ minRows: 1, maxRows: 8 }} value={values.parameters} onChange={(event) => set({ parameters: event.target.value })} />, t('backfill.parameters.hint'))}
        {hint ? <Alert type="warning" showIcon title={hint} /> : null}
        {error ? <Problem error={error} /> : null}
        {plan ? <PlanTable plan={plan} /> : null}
        <div className="form-foot">
          {plan ? <span className="dim">{t('backfill.planned', { run: plan.to_run, total: plan.total })}</span> : null}
          <span className="grow" />
          <Button onClick={onClose}>{t('common.cancel')}</Button>
          {plan ? (
            <Act refusal={refusal} type="primary" htmlType="submit" loading={isBusy} disabled={plan.to_run === 0}>{t('backfill.start', { count: plan.to_run })}</Act>
          ) : (
            <Button type="primary" htmlType="submit" loading={isBusy}>{t('backfill.show')}</Button>
          )}
        </div>
      </Form>
    </Drawer>
  )
}

function PlanTable({ plan }: { plan: Plan }) {
  const t = useT()
  const columns: Column<PlannedRun>[] = [
    { key: 'position', title: t('backfill.position'), width: '56px', render: (run) => <span className="num dim">{run.position}</span> },
    { key: 'time', title: t('time.logical'), width: 'minmax(180px, 1fr)', render: (run) => <Time at={run.logical_time} /> },
    { key: 'workflow', title: t('common.workflow'), width: 'minmax(100px, 1fr)', hide: 'narrow', render: (run) => <span className="cut">{run.workflow}</span> },
    { key: 'what', title: t('common.state'), width: 'minmax(120px, 1.4fr)', render: (run) => (run.skipped === null ? <strong>{t('backfill.runs')}</strong> : <span className="dim cut" title={run.skipped}>{t('backfill.skipped')}: {run.skipped}</span>) },
  ]
  return <div className="bulk-table" data-plan={plan.to_run}><DataTable label={t('backfill.dates')} rows={plan.runs} columns={columns} rowKey={(run) => run.position} rowHeight={32} /></div>
}
