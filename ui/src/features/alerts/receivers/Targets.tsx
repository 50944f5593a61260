/** How a member is reached: channels, each with addresses if it needs some. */
import { DeleteOutlined, PlusOutlined } from '@ant-design/icons'
import { Button, Form, Select } from 'antd'
import { useNamed, useT } from '@/shared/i18n'

/** A channel as members can be reached by it. */
export interface Way {
  name: string
  kind: string
  needsAddresses: boolean
}

export function Targets({ member, ways }: { member: number; ways: readonly Way[] }) {
  const t = useT()
  const named = useNamed()
  const form = Form.useFormInstance()
  return (
    <Form.List name={[member, 'targets']}>
      {(fields, { add, remove }) => (
        <>
          {fields.map(({ key, name }, index) => (
            <div key={key} className="target">
              <Form.Item name={[name, 'channel']} label={t('alerts.channel')} rules={[{ required: true, message: t('start.required') }]}>
                <Select options={ways.map((way) => ({ value: way.name, label: `${way.name} (${named('alerts.channel.kind', way.kind)})` }))} notFoundContent={t('alerts.channels.first')} />
              </Form.Item>
              <Form.Item noStyle shouldUpdate>
                {() => {
                  const chosen = ways.find((way) => way.name === form.getFieldValue(['members', member, 'targets', name, 'channel']))
                  return (
                    <Form.Item
                      name={[name, 'to']}
                      label={t('alerts.addresses')}
                      className="grow"
                      extra={chosen && !chosen.needsAddresses ? t('alerts.addresses.none') : undefined}
                      rules={chosen?.needsAddresses ? [{ type: 'array', required: true, min: 1, message: t('alerts.addresses.needed') }] : []}
                    >
                      <Select mode="tags" className="mono" tokenSeparators={[',', ' ', ';']} suffixIcon={null} open={false} placeholder={chosen?.needsAddresses ? 'ada@example.org' : t('common.optional')} />
                    </Form.Item>
                  )
                }}
              </Form.Item>
              {fields.length > 1 ? <Button className="target-remove" type="text" danger icon={<DeleteOutlined />} aria-label={`${t('alerts.remove')} ${t('alerts.channel')} ${index + 1}`} onClick={() => remove(name)} /> : null}
            </div>
          ))}
          <Button size="small" type="dashed" icon={<PlusOutlined />} onClick={() => add({ channel: '', to: [] })}>{t('alerts.targets.add')}</Button>
        </>
      )}
    </Form.List>
  )
}
