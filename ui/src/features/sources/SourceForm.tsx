/** The form of a data source: its fields follow from the kind. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Checkbox, Form, Input, InputNumber, Select } from 'antd'
import type { ReactNode } from 'react'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { DataSource, DataSourceIn, DataSourceKind } from '@/api/types'
import { projects as projectsOf } from '@/entities/queries'
import { FormDrawer } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { useFieldTexts } from '@/shared/i18n/useFieldTexts'
import { fieldsOf, optionsOf, type OptionField, type OptionValue } from './fields'

interface Values {
  name: string
  kind: DataSourceKind['kind']
  host?: string
  port?: number | null
  database?: string
  user?: string
  password?: string
  removes?: boolean
  has_password?: boolean
  options?: Record<string, OptionValue>
  shared_with?: string[]
}

interface Props {
  project: string
  name: string | null // null: a new one
  kinds: readonly DataSourceKind[]
  refusal: string | null
  renew: readonly unknown[]
  aside: ReactNode
  onClose: () => void
}

export function SourceForm({ project, name, kinds, refusal, renew, aside, onClose }: Props) {
  const t = useT()
  const queries = useQueryClient()
  const projects = useQuery(projectsOf)
  const texts = useFieldTexts()
  const told = (text: string): string => texts[text] ?? text
  const load = async () => {
    const { value, etag } = await takeTagged(api.GET('/api/v1/projects/{project}/data-sources/{name}', { params: { path: { project, name: name ?? '' } } }))
    return { value: valuesOf(value), etag }
  }
  const save = async (values: Values, etag: string | undefined): Promise<void> => {
    const kind = kinds.find((one) => one.kind === values.kind)
    if (!kind) return
    await take(api.PUT('/api/v1/projects/{project}/data-sources/{name}', { params: { path: { project, name: values.name }, header: onlyIf(etag) }, body: bodyOf(kind, values) }))
    await queries.invalidateQueries({ queryKey: renew })
  }
  const required = { required: true, whitespace: true, message: t('sources.needed') }
  const need = (kind: DataSourceKind, field: 'host' | 'database' | 'user') => (kind[field] === 'required' ? [required] : [])
  return (
    <FormDrawer<Values> wide title={name ?? t('sources.add')} submit={t('common.save')} refusal={refusal} aside={aside} onClose={onClose} onSave={save} {...(name ? { load } : { initial: { kind: 'postgresql', options: {}, shared_with: [] } })}>
      {(form) => (
        <>
          <div className="pair">
            <Form.Item name="name" label={t('common.name')} rules={[{ required: true, pattern: /^\w{1,100}$/, message: t('start.required') }]}><Input className="mono" disabled={name !== null} autoFocus={name === null} /></Form.Item>
            <Form.Item name="kind" label={t('sources.kind')}><Select showSearch={{ optionFilterProp: 'label' }} options={kinds.map((one) => ({ value: one.kind, label: one.title }))} /></Form.Item>
          </div>
          <Form.Item noStyle shouldUpdate={(old: Values, now: Values) => old.kind !== now.kind || old.has_password !== now.has_password}>
            {() => {
              const kind = kinds.find((one) => one.kind === form.getFieldValue('kind'))
              if (!kind) return null
              const hasPassword = form.getFieldValue('has_password') === true
              return (
                <>
                  {kind.host === 'none' ? null : (
                    <div className="pair">
                      <Form.Item name="host" label={t('sources.host')} rules={need(kind, 'host')}><Input className="mono" placeholder="db.example.org" /></Form.Item>
                      <Form.Item name="port" label={t('sources.port')}><InputNumber className="full" min={1} max={65535} precision={0} placeholder={kind.port === null ? '' : t('sources.port.usual', { port: kind.port })} /></Form.Item>
                    </div>
                  )}
                  {kind.database === 'none' ? null : <Form.Item name="database" label={t('sources.database')} extra={told(kind.database_is)} rules={need(kind, 'database')}><Input className="mono" /></Form.Item>}
                  <div className="pair">
                    {kind.user === 'none' ? null : <Form.Item name="user" label={t('sources.user')} rules={need(kind, 'user')}><Input className="mono" autoComplete="off" /></Form.Item>}
                    {kind.password === 'none' ? null : (
                      <div>
                        <Form.Item name="password" label={capitalized(told(kind.credential))} rules={kind.password === 'required' && !hasPassword ? [{ required: true, message: t('sources.needed') }] : []}><Input.Password className="mono" autoComplete="new-password" placeholder={hasPassword ? t('sources.password.set') : t('sources.password.none')} /></Form.Item>
                        {hasPassword && kind.password !== 'required' ? <Form.Item name="removes" valuePropName="checked"><Checkbox>{t('sources.password.remove')}</Checkbox></Form.Item> : null}
                      </div>
                    )}
                  </div>
                  <p className="dim form-note">{t('sources.placeholders')}</p>
                  <h2 className="form-head">{t('sources.options')}</h2>
                  <div className="pair">{fieldsOf(kind.options_schema).map((field) => <Option key={field.name} field={{ ...field, description: told(field.description) }} />)}</div>
                </>
              )
            }}
          </Form.Item>
          <Form.Item name="has_password" hidden><Input /></Form.Item>
          <Form.Item name="shared_with" label={t('sources.shared')} extra={t('sources.shared.hint', { name: `${project}/${name ?? '…'}` })}>
            <Select mode="tags" options={['*', ...(projects.data?.items ?? []).map((one) => one.name).filter((one) => one !== project)].map((value) => ({ value, label: value }))} />
          </Form.Item>
        </>
      )}
    </FormDrawer>
  )
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function Option({ field }: { field: OptionField }) {
  const t = useT()
  const placeholder = field.standard === null ? '' : t('sources.default', { value: field.standard })
  const input =
    field.type === 'choice' ? (
      <Select allowClear placeholder={placeholder} options={field.choices.map((value) => ({ value, label: value }))} />
    ) : field.type === 'boolean' ? (
      <Select allowClear placeholder={placeholder} options={['true', 'false'].map((value) => ({ value, label: value }))} />
    ) : field.type === 'integer' || field.type === 'number' ? (
      <InputNumber className="full" min={field.minimum} max={field.maximum} placeholder={placeholder} />
    ) : field.type === 'long' ? (
      <Input.TextArea className="mono" autoSize={{ minRows: 2, maxRows: 10 }} placeholder={placeholder} />
    ) : (
      <Input className="mono" placeholder={placeholder} />
    )
  return <Form.Item name={['options', field.name]} label={<code>{field.name}</code>} extra={field.description || undefined}>{input}</Form.Item>
}

function valuesOf(value: DataSource): Partial<Values> {
  const { name, kind, host, port, database, user, options, shared_with, has_password, password_secret } = value
  const shown = Object.fromEntries(Object.entries(options).map(([key, one]) => [key, typeof one === 'boolean' ? String(one) : one]))
  return { name, kind, host, port, database, user, options: shown, shared_with, has_password, ...(password_secret ? { password: `\${secret.${password_secret}}` } : {}) }
}

/** Returns the request; a password that is not given stays as it is, where there is one. */
function bodyOf(kind: DataSourceKind, values: Values): DataSourceIn {
  const { host, port, database, user, password, removes, options, shared_with } = values
  return {
    kind: kind.kind,
    ...(kind.host === 'none' ? {} : { host: host ?? '', port: port ?? null }),
    ...(kind.database === 'none' ? {} : { database: database ?? '' }),
    ...(kind.user === 'none' ? {} : { user: user ?? '' }),
    ...(kind.password === 'none' ? {} : removes ? { password: null } : password ? { password } : {}),
    options: optionsOf(fieldsOf(kind.options_schema), options ?? {}),
    shared_with: shared_with ?? [],
  } as DataSourceIn
}
