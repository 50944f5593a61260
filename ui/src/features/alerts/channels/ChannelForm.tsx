/** The form of a channel: its kind, and the options of that. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Form, Input, InputNumber, Select, Switch } from 'antd'
import type { AlertChannel, AlertChannelKind } from '@/api/types'
import { FormDrawer } from '@/entities/saving'
import { useNamed, useT } from '@/shared/i18n'
import { NameField } from '../fields'
import { channels, keyOf, secretNames } from '../queries'
import { bodyOf, optionsOf, valuesOf, type Values } from './channel'
import { OptionFields } from './OptionFields'

interface Props {
  project: string
  name: string | null // null: a new one
  kinds: readonly AlertChannelKind[]
  refusal: string | null
  onClose: () => void
}

export function ChannelForm({ project, name, kinds, refusal, onClose }: Props) {
  const t = useT()
  const named = useNamed()
  const queries = useQueryClient()
  const secrets = useQuery(secretNames(project))
  const load = async () => {
    const { value, etag } = await channels.load(project, name ?? '')
    return { value: valuesOf(value), etag }
  }
  const save = async (values: Values, etag: string | undefined): Promise<void> => {
    const kind = kinds.find((one) => one.kind === values.kind)
    if (!kind) return
    await channels.save(project, values.name, bodyOf(values, kind), etag)
    await queries.invalidateQueries({ queryKey: keyOf(project) })
  }
  const fresh = { kind: 'email', enabled: true, per_minute: 60, options: {} }
  return (
    <FormDrawer<Values> wide title={name ?? t('alerts.channels.add')} submit={t('common.save')} refusal={refusal} onClose={onClose} onSave={save} {...(name ? { load, read: (stored) => valuesOf(stored as AlertChannel) } : { initial: fresh })}>
      {(form) => (
        <>
          <div className="pair">
            <NameField isNew={name === null} />
            <Form.Item name="enabled" label={t('alerts.enabled')} valuePropName="checked" extra={t('alerts.channel.enabled.hint')}><Switch /></Form.Item>
            <Form.Item name="kind" label={t('alerts.channel.kind')}><Select options={kinds.map((one) => ({ value: one.kind, label: named('alerts.channel.kind', one.kind) }))} /></Form.Item>
            <Form.Item name="per_minute" label={t('alerts.channel.rate')} rules={[{ required: true, message: t('start.required') }]}><InputNumber className="full" min={1} max={6000} precision={0} /></Form.Item>
          </div>
          <h2 className="form-head">{t('sources.options')}</h2>
          <p className="dim form-note">{t('alerts.channel.secrets')} <Link to="/projects/$project/settings" params={{ project }} search={{ tab: 'secrets' as const }}>{t('settings.secrets')}</Link></p>
          <Form.Item noStyle shouldUpdate={(old: Values, now: Values) => old.kind !== now.kind}>
            {() => {
              const kind = kinds.find((one) => one.kind === form.getFieldValue('kind'))
              return kind ? <OptionFields key={kind.kind} options={optionsOf(kind)} secrets={secrets.data ?? []} /> : null
            }}
          </Form.Item>
          <Form.Item name="description" label={t('common.description')}><Input.TextArea autoSize={{ minRows: 2, maxRows: 8 }} /></Form.Item>
        </>
      )}
    </FormDrawer>
  )
}
