/** Fields of the options of a channel, as the schema of its kind asks for them. */
import { DeleteOutlined, PlusOutlined } from '@ant-design/icons'
import { Button, Form, Input, InputNumber, Select, Switch } from 'antd'
import type { ReactNode } from 'react'
import { useT } from '@/shared/i18n'
import type { Property } from '@/shared/schema-form/schema'
import { isSecret } from './channel'

interface Props {
  options: readonly Property[]
  secrets: readonly string[]
}

export function OptionFields({ options, secrets }: Props) {
  return (
    <div className="pair">
      {options.map((option) => (option.field.kind === 'pairs' ? <Pairs key={option.name} option={option} /> : <Option key={option.name} option={option} secrets={secrets} />))}
    </div>
  )
}

function Option({ option, secrets }: { option: Property; secrets: readonly string[] }) {
  const t = useT()
  const { name, description, isRequired, field, standard } = option
  const hint = standard === undefined || standard === '' ? '' : t('sources.default', { value: typeof standard === 'string' ? standard : JSON.stringify(standard) })
  const isOn = field.kind === 'boolean'
  const isLong = field.kind === 'text' && field.isLong
  return (
    <Form.Item
      name={['options', name]}
      label={<code>{name}</code>}
      extra={description || undefined}
      className={isLong ? 'whole-row' : undefined}
      {...(isOn ? { valuePropName: 'checked' } : {})}
      rules={isRequired && !isOn ? [{ required: true, message: t('start.required') }] : []}
    >
      {inputOf(option, secrets, hint, t('alerts.secrets.none'))}
    </Form.Item>
  )
}

function inputOf({ name, field }: Property, secrets: readonly string[], hint: string, noSecrets: string): ReactNode {
  if (isSecret(name)) return <Select allowClear showSearch className="mono" placeholder={hint} options={secrets.map((value) => ({ value, label: value }))} notFoundContent={noSecrets} />
  switch (field.kind) {
    case 'boolean':
      return <Switch />
    case 'number':
      return <InputNumber className="full" min={field.min} max={field.max} placeholder={hint} {...(field.isWhole ? { precision: 0 } : {})} />
    case 'choice':
      return <Select allowClear placeholder={hint} options={field.options.map((value) => ({ value, label: value }))} />
    case 'texts':
      return <Select mode="tags" className="mono" open={false} suffixIcon={null} placeholder={hint} />
    default:
      return field.kind === 'text' && field.isLong ? <Input.TextArea className="mono" autoSize={{ minRows: 2, maxRows: 10 }} placeholder={hint} /> : <Input className="mono" autoComplete="off" placeholder={hint} />
  }
}

/** Names with texts, such as headers. */
function Pairs({ option: { name, description } }: { option: Property }) {
  const t = useT()
  return (
    <Form.List name={['options', name]}>
      {(fields, { add, remove }) => (
        <div className="whole-row pairs" role="group" aria-label={name}>
          <code>{name}</code>
          {fields.map(({ key, name: at }) => (
            <div key={key} className="pair-row">
              <Form.Item name={[at, 'name']} rules={[{ required: true, message: t('start.required') }]}><Input className="mono" aria-label={t('common.name')} placeholder={t('common.name')} /></Form.Item>
              <Form.Item name={[at, 'value']} className="grow"><Input className="mono" aria-label={t('common.value')} placeholder={t('common.value')} /></Form.Item>
              <Button type="text" danger icon={<DeleteOutlined />} aria-label={t('alerts.remove')} onClick={() => remove(at)} />
            </div>
          ))}
          <div><Button size="small" type="dashed" icon={<PlusOutlined />} onClick={() => add({ name: '', value: '' })}>{t('common.add')}</Button></div>
          {description ? <p className="dim small">{description}</p> : null}
        </div>
      )}
    </Form.List>
  )
}
