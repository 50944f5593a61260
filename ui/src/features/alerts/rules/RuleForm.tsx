/** The form of a rule: what it is about, who is told, and when. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Form, Input, Segmented, Select, Switch } from 'antd'
import type { AlertReceiver, AlertRule } from '@/api/types'
import { useRows } from '@/entities/lists'
import { FormDrawer } from '@/entities/saving'
import { useNamed, useT } from '@/shared/i18n'
import { DurationField, NameField } from '../fields'
import { keyOf, receivers as receiversOf, rules, workflowNames } from '../queries'
import { Conditions } from './Conditions'
import { Escalation } from './Escalation'
import { QuietHours } from './QuietHours'
import { bodyOf, FRESH, shapeOf, valuesOf, type Trigger, type Values } from './rule'
import { Templates } from './Templates'
import { Triggers } from './Triggers'

const SEVERITIES = ['info', 'warning', 'critical'] as const
const LANGUAGES = [{ value: 'en', label: <span lang="en">English</span> }, { value: 'zh', label: <span lang="zh">简体中文</span> }]

interface Props {
  project: string
  name: string | null // null: a new one
  refusal: string | null
  onClose: () => void
}

export function RuleForm({ project, name, refusal, onClose }: Props) {
  const t = useT()
  const named = useNamed()
  const queries = useQueryClient()
  const workflows = useQuery(workflowNames(project))
  const receivers = useRows<AlertReceiver>(receiversOf.list(project)).rows.map((one) => one.name)
  const load = async () => {
    const { value, etag } = await rules.load(project, name ?? '')
    return { value: valuesOf(value), etag }
  }
  const save = async (values: Values, etag: string | undefined): Promise<void> => {
    await rules.save(project, values.name, bodyOf(values), etag)
    await queries.invalidateQueries({ queryKey: keyOf(project) })
  }
  const some = { type: 'array' as const, required: true, min: 1 }
  const alone = (_: unknown, triggers: Trigger[] | undefined): Promise<void> => (shapeOf(triggers ?? []).isMixed ? Promise.reject(new Error(t('alerts.triggers.mixed'))) : Promise.resolve())
  const fresh = { ...FRESH, ...(receivers.length === 1 ? { receivers } : {}) }
  return (
    <FormDrawer<Values> wide title={name ?? t('alerts.rules.add')} submit={t('common.save')} refusal={refusal} onClose={onClose} onSave={save} {...(name ? { load, read: (stored) => valuesOf(stored as AlertRule) } : { initial: fresh })}>
      {(form) => (
        <>
          <div className="pair">
            <NameField isNew={name === null} />
            <Form.Item name="enabled" label={t('alerts.enabled')} valuePropName="checked" extra={t('alerts.rule.enabled.hint')}><Switch /></Form.Item>
          </div>
          <h2 className="form-head">{t('alerts.rule.about')}</h2>
          <Form.Item name="triggers" rules={[{ ...some, message: t('alerts.triggers.none') }, { validator: alone }]}><Triggers /></Form.Item>
          <Form.Item noStyle shouldUpdate={(old: Values, now: Values) => old.triggers !== now.triggers}>
            {() => <Scope triggers={(form.getFieldValue('triggers') as Trigger[] | undefined) ?? []} workflows={workflows.data ?? []} />}
          </Form.Item>
          <h2 className="form-head">{t('alerts.rule.who')}</h2>
          <Form.Item name="receivers" label={t('alerts.receivers')} rules={[{ ...some, message: t('alerts.receivers.needed') }]} extra={receivers.length ? undefined : t('alerts.receivers.first')}>
            <Select mode="multiple" options={receivers.map((value) => ({ value, label: value }))} />
          </Form.Item>
          <div className="pair">
            <Form.Item name="severity" label={t('alerts.severity')} extra={t('alerts.severity.hint')}><Segmented aria-label={t('alerts.severity')} options={SEVERITIES.map((value) => ({ value, label: named('alerts.severity', value) }))} /></Form.Item>
            <Form.Item name="language" label={t('alerts.language')}><Segmented aria-label={t('alerts.language')} options={LANGUAGES} /></Form.Item>
          </div>
          <h2 className="form-head">{t('alerts.rule.when')}</h2>
          <div className="pair">
            <DurationField name="group_for" label={t('alerts.group')} hint={t('alerts.group.hint')} placeholder="30s" />
            <DurationField name="repeat_every" label={t('alerts.repeat')} hint={t('alerts.repeat.hint')} placeholder={t('alerts.repeat.never')} />
          </div>
          <Form.Item name="tell_recovery" label={t('alerts.recovery')} valuePropName="checked" extra={t('alerts.recovery.hint')}><Switch /></Form.Item>
          <QuietHours />
          <Escalation receivers={receivers} />
          <Templates project={project} />
          <Form.Item name="description" label={t('common.description')}><Input.TextArea autoSize={{ minRows: 2, maxRows: 8 }} /></Form.Item>
        </>
      )}
    </FormDrawer>
  )
}

/** What a rule is about in more detail; what can be asked depends on its triggers. */
function Scope({ triggers, workflows }: { triggers: readonly Trigger[]; workflows: readonly string[] }) {
  const t = useT()
  const { hasWorkflows, needsWorkflows, hasTasks, hasLabels } = shapeOf(triggers)
  const needed = needsWorkflows ? [{ type: 'array' as const, required: true, min: 1, message: t('alerts.workflows.needed') }] : []
  return (
    <>
      <Conditions triggers={triggers} />
      <div className="pair narrow">
        {hasWorkflows ? <Form.Item name="workflows" label={t('alerts.workflows')} extra={t('alerts.pattern.hint')} rules={needed}><Patterns names={workflows} none={needsWorkflows ? '*' : t('alerts.workflows.all')} /></Form.Item> : null}
        {hasTasks ? <Form.Item name="tasks" label={t('common.tasks')} extra={t('alerts.tasks.hint')}><Patterns names={[]} none={t('start.allTasks')} /></Form.Item> : null}
        {hasLabels ? <Form.Item name="labels" label={t('alerts.labels')} extra={t('alerts.labels.hint')}><Patterns names={[]} none={t('alerts.labels.any')} /></Form.Item> : null}
      </div>
    </>
  )
}

/** Names or patterns: those that there are can be chosen, others typed. */
function Patterns({ names, none, ...rest }: { names: readonly string[]; none: string; id?: string; value?: string[]; onChange?: (value: string[]) => void }) {
  return <Select<string[]> {...rest} mode="tags" className="mono" allowClear tokenSeparators={[',', ' ']} placeholder={none} options={names.map((value) => ({ value, label: value }))} suffixIcon={null} />
}
