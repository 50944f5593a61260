/** The form of a silence: what it covers, until when, and why. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Alert, App, AutoComplete, Form, Input, Segmented } from 'antd'
import { api, ApiProblem, take } from '@/api/client'
import { useRows } from '@/entities/lists'
import type { AlertRule } from '@/api/types'
import { useRefusal } from '@/entities/marks'
import { FormDrawer } from '@/entities/saving'
import { useNamed, useT } from '@/shared/i18n'
import { Time, useZone } from '@/shared/time/Time'
import { keyOf, rules, workflowNames } from '../queries'
import { CHOICES, untilOf, type Choice } from './until'

/** Names or patterns; what is not given is not looked at. */
export interface Covered {
  workflow?: string
  task?: string
  rule?: string
}

interface Values extends Covered {
  choice: Choice
  own?: string
  reason?: string
}

export function SilenceForm({ project, covered, onClose }: { project: string; covered: Covered; onClose: () => void }) {
  const t = useT()
  const named = useNamed()
  const zone = useZone()
  const queries = useQueryClient()
  const { message } = App.useApp()
  const refusal = useRefusal('run.operate', project)
  const workflows = useQuery(workflowNames(project))
  const known = useRows<AlertRule>(rules.list(project))
  const save = async ({ workflow, task, rule, choice, own, reason }: Values): Promise<void> => {
    const until = untilOf(choice, own ?? '', Date.now(), zone)
    if (until === null) throw new ApiProblem(-1, { title: t('alerts.silence.when') })
    const body = { workflow: workflow?.trim() ?? '', task: task?.trim() ?? '', rule: rule?.trim() ?? '', until, reason: reason ?? '' }
    await take(api.POST('/api/v1/projects/{project}/alert-silences', { params: { path: { project } }, body }))
    void message.success(t('alerts.silence.made'))
    await queries.invalidateQueries({ queryKey: keyOf(project) })
  }
  const pattern = (name: keyof Covered, label: string, names: readonly string[], hint?: string) => (
    <Form.Item name={name} label={label} extra={hint}>
      <AutoComplete allowClear className="mono" placeholder={t('alerts.silence.all')} options={names.map((value) => ({ value }))} showSearch={{ filterOption: (text, option) => (option?.value ?? '').includes(text) }} />
    </Form.Item>
  )
  return (
    <FormDrawer<Values> title={t('alerts.silences.add')} initial={{ choice: '1h', ...covered }} submit={t('alerts.silence.make')} refusal={refusal} onClose={onClose} onSave={save}>
      {(form) => (
        <>
          <p className="dim form-note">{t('alerts.silences.text')}</p>
          {pattern('workflow', t('common.workflow'), workflows.data ?? [], t('alerts.pattern.hint'))}
          {pattern('task', t('alerts.task'), [])}
          {pattern('rule', t('alerts.rule'), known.rows.map((one) => one.name))}
          <Form.Item noStyle shouldUpdate>
            {() => (['workflow', 'task', 'rule'] as const).some((name) => (form.getFieldValue(name) as string | undefined)?.trim()) ? null : <Alert className="form-alert" type="warning" showIcon title={t('alerts.silence.whole', { project })} />}
          </Form.Item>
          <Form.Item name="choice" label={t('alerts.silence.until')} className="silence-choice"><Segmented aria-label={t('alerts.silence.until')} options={CHOICES.map((value) => ({ value, label: named('alerts.silence.choice', value) }))} /></Form.Item>
          <Form.Item noStyle shouldUpdate>
            {() => {
              const choice = form.getFieldValue('choice') as Choice
              const until = untilOf(choice, (form.getFieldValue('own') as string | undefined) ?? '', Date.now(), zone)
              return (
                <>
                  {choice === 'own' ? <Form.Item name="own" label={t('alerts.silence.own', { zone })} rules={[{ required: true, message: t('start.required') }]}><Input type="datetime-local" /></Form.Item> : null}
                  {until ? <p className="dim form-note">{t('alerts.silence.ends')} <Time at={until} /></p> : null}
                </>
              )
            }}
          </Form.Item>
          <Form.Item name="reason" label={t('common.reason')}><Input.TextArea autoSize={{ minRows: 2, maxRows: 6 }} placeholder={t('alerts.silence.reason')} /></Form.Item>
        </>
      )}
    </FormDrawer>
  )
}
