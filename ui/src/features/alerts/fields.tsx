/** Fields that several forms of alerts have. */
import { Form, Input, Select } from 'antd'
import { useMemo, type ReactNode } from 'react'
import { useT } from '@/shared/i18n'
import { isDuration } from '@/shared/time/duration'

type Path = string | (string | number)[]

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/

/** The name of a definition; it is chosen once. `new` is what addresses call one that is not there yet. */
export function NameField({ isNew }: { isNew: boolean }) {
  const t = useT()
  const check = (_: unknown, value: string | undefined): Promise<void> => (isNew && (!NAME.test(value ?? '') || value === 'new') ? Promise.reject(new Error(t('alerts.name.wrong'))) : Promise.resolve())
  return <Form.Item name="name" label={t('common.name')} rules={[{ validator: check }]}><Input className="mono" disabled={!isNew} autoFocus={isNew} autoComplete="off" /></Form.Item>
}

export function DurationField({ name, label, hint, placeholder, isRequired = false }: { name: Path; label: string; hint?: string; placeholder: string; isRequired?: boolean }) {
  const t = useT()
  const check = (_: unknown, value: string | undefined): Promise<void> => {
    const text = value?.trim() ?? ''
    return (text === '' && !isRequired) || isDuration(text) ? Promise.resolve() : Promise.reject(new Error(t('alerts.duration.wrong')))
  }
  return <Form.Item name={name} label={label} extra={hint} rules={[{ validator: check }]}><Input className="mono" placeholder={placeholder} autoComplete="off" /></Form.Item>
}

export function ZoneField({ name }: { name: Path }) {
  const t = useT()
  const zones = useMemo(() => ['UTC', ...Intl.supportedValuesOf('timeZone')], [])
  return <Form.Item name={name} label={t('alerts.zone')}><Select showSearch options={zones.map((value) => ({ value, label: value }))} /></Form.Item>
}

/** One of several entries of a list, with the button that takes it out. */
export function Entry({ title, remove, children }: { title: ReactNode; remove: ReactNode; children: ReactNode }) {
  return (
    <div className="entry">
      <div className="entry-head"><span className="strong">{title}</span>{remove}</div>
      {children}
    </div>
  )
}

/** The zone of this browser: what is most often meant. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}
