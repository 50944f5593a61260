/** Parameters and secrets of a project. */
import { useQueryClient } from '@tanstack/react-query'
import { Form, Input } from 'antd'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { Parameter, Secret } from '@/api/types'
import { useRows } from '@/entities/lists'
import { FormDrawer } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { keyOf, parameters, secrets } from './queries'
import { Section } from './Section'

/** Returns the rule that a field must be given. */
export function useRequired() {
  const t = useT()
  return { required: true, whitespace: true, message: t('start.required') }
}

export function Parameters({ project }: { project: string }) {
  const t = useT()
  const queries = useQueryClient()
  const list = useRows<Parameter>(parameters(project))
  const renew = [keyOf(project, 'parameters')]
  const required = useRequired()
  const at = (name: string) => ({ path: { project, name } })
  const save = async (values: { name: string; value: string }, etag: string | undefined): Promise<void> => {
    await take(api.PUT('/api/v1/projects/{project}/parameters/{name}', { params: { ...at(values.name), header: onlyIf(etag) }, body: { value: values.value ?? '' } }))
    await queries.invalidateQueries({ queryKey: keyOf(project, 'parameters') })
  }
  const remove = async (row: Parameter): Promise<void> => {
    const now = await takeTagged(api.GET('/api/v1/projects/{project}/parameters/{name}', { params: at(row.name) }))
    await take(api.DELETE('/api/v1/projects/{project}/parameters/{name}', { params: { ...at(row.name), header: onlyIf(now.etag) } }))
  }
  return (
    <Section
      project={project}
      needed="project.edit"
      list={list}
      label={t('settings.parameters')}
      text={t('settings.parameters.text')}
      none={t('settings.parameters.none')}
      add={t('settings.parameters.add')}
      edit={t('common.edit')}
      nameOf={(row) => row.name}
      renew={renew}
      columns={[
        { key: 'name', title: t('common.name'), width: 'minmax(120px, 1fr)', render: (row) => <code>{row.name}</code> },
        { key: 'value', title: t('common.value'), width: 'minmax(100px, 2fr)', render: (row) => <code className="dim" title={row.value}>{row.value}</code> },
      ]}
      remove={{ text: t('settings.delete.text'), act: remove }}
      form={(row, close, refusal) => (
        <FormDrawer<{ name: string; value: string }> title={row ? row.name : t('settings.parameters.add')} submit={t('common.save')} refusal={refusal} onClose={close} onSave={save} {...(row ? { load: () => takeTagged(api.GET('/api/v1/projects/{project}/parameters/{name}', { params: at(row.name) })) } : {})}>
          <Form.Item name="name" label={t('common.name')} rules={[required]}><Input className="mono" disabled={row !== null} autoFocus={row === null} /></Form.Item>
          <Form.Item name="value" label={t('common.value')}><Input.TextArea className="mono" autoSize={{ minRows: 1, maxRows: 12 }} autoFocus={row !== null} /></Form.Item>
        </FormDrawer>
      )}
    />
  )
}

export function Secrets({ project }: { project: string }) {
  const t = useT()
  const queries = useQueryClient()
  const list = useRows<Secret>(secrets(project))
  const required = useRequired()
  const at = (name: string) => ({ path: { project, name } })
  const save = async (values: { name: string; value: string }, etag: string | undefined): Promise<void> => {
    const body = { value: values.value } as never // either a value or a reference, which the generated type does not say
    await take(api.PUT('/api/v1/projects/{project}/secrets/{name}', { params: { ...at(values.name), header: onlyIf(etag) }, body }))
    await queries.invalidateQueries({ queryKey: keyOf(project, 'secrets') })
  }
  const remove = async (row: Secret): Promise<void> => {
    const now = await takeTagged(api.GET('/api/v1/projects/{project}/secrets/{name}', { params: at(row.name) }))
    await take(api.DELETE('/api/v1/projects/{project}/secrets/{name}', { params: { ...at(row.name), header: onlyIf(now.etag) } }))
  }
  return (
    <Section
      project={project}
      needed="connection.edit"
      list={list}
      label={t('settings.secrets')}
      text={t('settings.secrets.text')}
      none={t('settings.secrets.none')}
      add={t('settings.secrets.add')}
      edit={t('settings.secrets.set')}
      nameOf={(row) => row.name}
      renew={[keyOf(project, 'secrets')]}
      columns={[
        { key: 'name', title: t('common.name'), width: 'minmax(120px, 1fr)', render: (row) => <code>{row.name}</code> },
        { key: 'value', title: t('common.value'), width: 'minmax(90px, 1fr)', render: (row) => (row.reference ? <code>{row.reference}</code> : <span className="dim">{t('settings.secrets.hidden')}</span>) },
        { key: 'at', title: t('common.changed'), width: 'minmax(190px, 1fr)', hide: 'narrow', render: (row) => <Time at={row.updated_at} /> },
      ]}
      remove={{ text: t('settings.secrets.delete.text'), act: remove }}
      form={(row, close, refusal) => (
        <FormDrawer<{ name: string; value: string }> title={row ? row.name : t('settings.secrets.add')} submit={t('common.save')} refusal={refusal} onClose={close} onSave={save} {...(row ? { load: () => takeTagged(api.GET('/api/v1/projects/{project}/secrets/{name}', { params: at(row.name) })) } : {})}>
          <Form.Item name="name" label={t('common.name')} rules={[required]}><Input className="mono" disabled={row !== null} autoFocus={row === null} autoComplete="off" /></Form.Item>
          <Form.Item name="value" label={t('common.value')} rules={[{ required: true, message: t('start.required') }]} extra={t('settings.secrets.hidden')}><Input.Password className="mono" autoFocus={row !== null} autoComplete="new-password" /></Form.Item>
        </FormDrawer>
      )}
    />
  )
}
