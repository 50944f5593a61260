/** The form of a receiver: members, how each is reached, and who of them is on duty. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { PlusOutlined } from '@ant-design/icons'
import { Button, Form, Input, InputNumber, Switch } from 'antd'
import type { AlertChannel, AlertReceiver } from '@/api/types'
import { useRows } from '@/entities/lists'
import { FormDrawer } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Entry, NameField, ZoneField } from '../fields'
import { channelKinds, channels as channelsOf, keyOf, receivers } from '../queries'
import { bodyOf, freshMember, freshRotation, valuesOf, type Values } from './receiver'
import { Targets, type Way } from './Targets'

interface Props {
  project: string
  name: string | null // null: a new one
  refusal: string | null
  onClose: () => void
}

export function ReceiverForm({ project, name, refusal, onClose }: Props) {
  const t = useT()
  const queries = useQueryClient()
  const kinds = useQuery(channelKinds)
  const channels = useRows<AlertChannel>(channelsOf.list(project)).rows
  const today = new Date().toLocaleDateString('en-CA') // 2026-01-31
  const needsAddresses = new Set(kinds.data?.items.filter((kind) => kind.needs_addresses).map((kind) => kind.kind))
  const ways: Way[] = channels.map((channel) => {
    const kind = String(channel.spec.kind)
    return { name: channel.name, kind, needsAddresses: needsAddresses.has(kind) }
  })
  const load = async () => {
    const { value, etag } = await receivers.load(project, name ?? '')
    return { value: valuesOf(value, today), etag }
  }
  const save = async (values: Values, etag: string | undefined): Promise<void> => {
    await receivers.save(project, values.name, bodyOf(values), etag)
    await queries.invalidateQueries({ queryKey: keyOf(project) })
  }
  const fresh = { members: [freshMember(channels.map((one) => one.name))], hasRotation: false, rotation: freshRotation(today) }
  return (
    <FormDrawer<Values> wide title={name ?? t('alerts.receivers.add')} submit={t('common.save')} refusal={refusal} onClose={onClose} onSave={save} {...(name ? { load, read: (stored) => valuesOf(stored as AlertReceiver, today) } : { initial: fresh })}>
      {(form) => (
        <>
          <NameField isNew={name === null} />
          <h2 className="form-head">{t('alerts.members')}</h2>
          <Form.List name="members">
            {(fields, { add, remove }) => (
              <div className="entries">
                {fields.map(({ key, name: at }, index) => (
                  <Entry
                    key={key}
                    title={t('alerts.members.one', { number: index + 1 })}
                    remove={fields.length > 1 ? <Button size="small" type="text" danger onClick={() => remove(at)}>{t('alerts.remove')}<span className="hidden"> {t('alerts.members.one', { number: index + 1 })}</span></Button> : null}
                  >
                    <Form.Item name={[at, 'name']} label={t('common.name')}><Input placeholder={t('common.optional')} autoComplete="off" /></Form.Item>
                    <Targets member={at} ways={ways} />
                  </Entry>
                ))}
                <Button type="dashed" icon={<PlusOutlined />} onClick={() => add(freshMember(channels.map((one) => one.name)))}>{t('alerts.members.add')}</Button>
              </div>
            )}
          </Form.List>
          <h2 className="form-head">{t('alerts.rotation')}</h2>
          <Form.Item name="hasRotation" label={t('alerts.rotation.on')} valuePropName="checked" extra={t('alerts.rotation.text')}><Switch /></Form.Item>
          <Form.Item noStyle shouldUpdate={(old: Values, now: Values) => old.hasRotation !== now.hasRotation}>
            {() =>
              form.getFieldValue('hasRotation') === true ? (
                <div className="pair narrow">
                  <Form.Item name={['rotation', 'start']} label={t('alerts.rotation.start')} rules={[{ required: true, message: t('start.required') }]}><Input type="date" /></Form.Item>
                  <Form.Item name={['rotation', 'at']} label={t('alerts.rotation.at')} rules={[{ required: true, message: t('start.required') }]}><Input type="time" /></Form.Item>
                  <ZoneField name={['rotation', 'timezone']} />
                  <Form.Item name={['rotation', 'weeks']} label={t('alerts.rotation.weeks')} rules={[{ required: true, message: t('start.required') }]}><InputNumber className="full" min={1} max={52} precision={0} /></Form.Item>
                </div>
              ) : null
            }
          </Form.Item>
          <Form.Item name="description" label={t('common.description')}><Input.TextArea autoSize={{ minRows: 2, maxRows: 8 }} /></Form.Item>
        </>
      )}
    </FormDrawer>
  )
}
