/** Who is told as well while something goes on and nobody has acknowledged it, step by step. */
import { PlusOutlined } from '@ant-design/icons'
import { Button, Form, Select } from 'antd'
import { useT } from '@/shared/i18n'
import { DurationField, Entry } from '../fields'

export function Escalation({ receivers }: { receivers: readonly string[] }) {
  const t = useT()
  return (
    <Form.List name="escalation">
      {(fields, { add, remove }) => (
        <div className="entries">
          <h2 className="form-head">{t('alerts.escalation')}</h2>
          <p className="dim form-note">{t('alerts.escalation.text')}</p>
          {fields.map(({ key, name }, index) => (
            <Entry key={key} title={t('alerts.escalation.one', { number: index + 1 })} remove={<Button size="small" type="text" danger onClick={() => remove(name)}>{t('alerts.remove')}<span className="hidden"> {t('alerts.escalation.one', { number: index + 1 })}</span></Button>}>
              <div className="pair">
                <DurationField isRequired name={[name, 'after']} label={t('alerts.escalation.after')} placeholder="15m" />
                <Form.Item name={[name, 'receivers']} label={t('alerts.receivers')} rules={[{ type: 'array', required: true, min: 1, message: t('alerts.receivers.needed') }]}>
                  <Select mode="multiple" options={receivers.map((value) => ({ value, label: value }))} />
                </Form.Item>
              </div>
            </Entry>
          ))}
          <Button type="dashed" icon={<PlusOutlined />} onClick={() => add({ after: fields.length ? '' : '15m', receivers: [] })}>{t('alerts.escalation.add')}</Button>
        </div>
      )}
    </Form.List>
  )
}
