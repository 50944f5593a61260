/** The fields of what a rule watches itself, as far as its triggers use them. */
import { Form, Input, InputNumber, Segmented, Select } from 'antd'
import { useNamed, useT } from '@/shared/i18n'
import { DurationField, ZoneField } from '../fields'
import { uses, WEEKDAYS } from './conditions'
import type { Trigger } from './rule'

const MODES = ['fixed', 'usual'] as const

export function Conditions({ triggers }: { triggers: readonly Trigger[] }) {
  const t = useT()
  const required = { required: true, message: t('start.required') }
  return (
    <>
      {uses(triggers, 'deadline') ? <Deadline /> : null}
      {uses(triggers, 'no_success_for') ? <DurationField isRequired name="no_success_for" label={t('alerts.noSuccess')} hint={t('alerts.noSuccess.hint')} placeholder="26h" /> : null}
      {uses(triggers, 'success_rate') ? (
        <div className="pair">
          <Form.Item name={['success_rate', 'percent']} label={t('alerts.rate')} rules={[required]}><InputNumber className="full" min={1} max={100} suffix="%" /></Form.Item>
          <Form.Item name={['success_rate', 'runs']} label={t('alerts.rate.runs')} rules={[required]}><InputNumber className="full" min={2} max={1000} precision={0} /></Form.Item>
        </div>
      ) : null}
    </>
  )
}

function Deadline() {
  const t = useT()
  const named = useNamed()
  const form = Form.useFormInstance()
  const required = { required: true, message: t('start.required') }
  return (
    <>
      <Form.Item name={['deadline', 'mode']} label={t('alerts.deadline')}><Segmented aria-label={t('alerts.deadline')} options={MODES.map((value) => ({ value, label: named('alerts.deadline.mode', value) }))} /></Form.Item>
      <Form.Item noStyle shouldUpdate>
        {() =>
          form.getFieldValue(['deadline', 'mode']) === 'usual' ? (
            <>
              <p className="dim form-note">{t('alerts.deadline.usual')}</p>
              <div className="pair narrow">
                <Form.Item name={['deadline', 'percentile']} label={t('alerts.deadline.percentile')} rules={[required]}><InputNumber className="full" min={50} max={100} suffix="%" /></Form.Item>
                <Form.Item name={['deadline', 'runs']} label={t('alerts.deadline.runs')} rules={[required]}><InputNumber className="full" min={5} max={365} precision={0} /></Form.Item>
                <DurationField name={['deadline', 'margin']} label={t('alerts.deadline.margin')} placeholder="10m" />
                <ZoneField name={['deadline', 'timezone']} />
              </div>
            </>
          ) : (
            <div className="pair narrow">
              <Form.Item name={['deadline', 'at']} label={t('alerts.deadline.at')} rules={[required]}><Input type="time" /></Form.Item>
              <ZoneField name={['deadline', 'timezone']} />
            </div>
          )
        }
      </Form.Item>
      <Form.Item name={['deadline', 'days']} label={t('alerts.deadline.days')} rules={[{ type: 'array', ...required, min: 1 }]}>
        <Select mode="multiple" options={WEEKDAYS.map((value) => ({ value, label: named('alerts.day', value) }))} />
      </Form.Item>
    </>
  )
}
