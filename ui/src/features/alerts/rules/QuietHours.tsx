/** Hours in which messages wait until they are over. */
import { PlusOutlined } from '@ant-design/icons'
import { Button, Form, Input, Select } from 'antd'
import { useNamed, useT } from '@/shared/i18n'
import { Entry, ownZone, ZoneField } from '../fields'
import { WEEKDAYS } from './conditions'

export function QuietHours() {
  const t = useT()
  const named = useNamed()
  const required = { required: true, message: t('start.required') }
  return (
    <Form.List name="quiet">
      {(fields, { add, remove }) => (
        <div className="entries">
          <h2 className="form-head">{t('alerts.quiet')}</h2>
          <p className="dim form-note">{t('alerts.quiet.text')}</p>
          {fields.map(({ key, name }, index) => (
            <Entry key={key} title={t('alerts.quiet.one', { number: index + 1 })} remove={<Button size="small" type="text" danger onClick={() => remove(name)}>{t('alerts.remove')}<span className="hidden"> {t('alerts.quiet.one', { number: index + 1 })}</span></Button>}>
              <div className="pair narrow">
                <Form.Item name={[name, 'since']} label={t('alerts.quiet.since')} rules={[required]}><Input type="time" /></Form.Item>
                <Form.Item name={[name, 'until']} label={t('alerts.quiet.until')} rules={[required]}><Input type="time" /></Form.Item>
                <ZoneField name={[name, 'timezone']} />
              </div>
              <Form.Item name={[name, 'days']} label={t('alerts.quiet.days')} rules={[{ type: 'array', required: true, min: 1, message: t('start.required') }]}>
                <Select mode="multiple" options={WEEKDAYS.map((value) => ({ value, label: named('alerts.day', value) }))} />
              </Form.Item>
            </Entry>
          ))}
          <Button type="dashed" icon={<PlusOutlined />} onClick={() => add({ since: '22:00', until: '07:00', days: [...WEEKDAYS], timezone: ownZone() })}>{t('alerts.quiet.add')}</Button>
        </div>
      )}
    </Form.List>
  )
}
