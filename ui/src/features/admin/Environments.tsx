/** Environments of tasks: the administrator of the workers sets them. */
import { useQueryClient } from '@tanstack/react-query'
import { Form, Input, Select, Tag } from 'antd'
import { useState } from 'react'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { Environment } from '@/api/types'
import { ListTable, pagesOf, useRows } from '@/entities/lists'
import { Act, useRefusal } from '@/entities/marks'
import { FormDrawer, useAsk, useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'

const LIMIT = 200
const KEY = ['environments']

interface EnvironmentForm {
  name: string
  description?: string
  python?: string
  setup?: string
  variables?: string
  worker_groups?: string[]
}

export function Environments() {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const queries = useQueryClient()
  const refusal = useRefusal('environment.edit')
  const list = useRows<Environment>(pagesOf(KEY, (cursor) => take(api.GET('/api/v1/environments', { params: { query: { limit: LIMIT, cursor } } }))))
  const [open, setOpen] = useState<Environment | 'new' | null>(null)
  const [users, setUsers] = useState<readonly string[]>([])
  const row = open === 'new' ? null : open
  const at = (name: string) => ({ path: { name } })
  const load = async (name: string) => {
    const { value, etag } = await takeTagged(api.GET('/api/v1/environments/{name}', { params: at(name) }))
    setUsers(value.workflows)
    return { value: { ...value, variables: Object.entries(value.variables).map(([key, one]) => `${key}=${one}`).join('\n') }, etag }
  }
  const save = async ({ name, description, python, setup, variables, worker_groups }: EnvironmentForm, etag: string | undefined): Promise<void> => {
    const body = { description: description ?? '', python: python ?? '', setup: setup ?? '', variables: pairs(variables ?? ''), worker_groups: worker_groups ?? [] }
    await take(api.PUT('/api/v1/environments/{name}', { params: { ...at(name), header: onlyIf(etag) }, body }))
    await queries.invalidateQueries({ queryKey: KEY })
  }
  const remove = async (name: string): Promise<void> => {
    const { etag } = await takeTagged(api.GET('/api/v1/environments/{name}', { params: at(name) }))
    await take(api.DELETE('/api/v1/environments/{name}', { params: { ...at(name), header: onlyIf(etag) } }))
  }
  const columns: Column<Environment>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (one) => <span className="row"><code>{one.name}</code><span className="dim num">{`@${one.version}`}</span></span> },
    { key: 'variables', title: t('admin.environments.count', { count: 2 }).replace(/^2 /, ''), width: '110px', hide: 'narrow', render: (one) => <span className="num">{t('admin.environments.count', { count: Object.keys(one.variables).length })}</span> },
    { key: 'python', title: t('admin.environments.python'), width: 'minmax(100px, 1.4fr)', hide: 'medium', render: (one) => <code className="dim">{one.python}</code> },
    { key: 'groups', title: t('admin.environments.groups'), width: 'minmax(90px, 1fr)', render: (one) => (one.worker_groups.length ? one.worker_groups.map((name) => <Tag key={name}>{name}</Tag>) : <span className="dim">{t('admin.environments.groups.all')}</span>) },
    { key: 'text', title: t('common.description'), width: 'minmax(100px, 1.4fr)', hide: 'medium', render: (one) => <span className="dim">{one.description}</span> },
    { key: 'ways', title: <span className="hidden">{t('common.delete')}</span>, width: '76px', render: (one) => <Act size="small" type="text" danger refusal={refusal} onClick={() => ask({ title: `${t('common.delete')}: ${one.name}`, text: t('settings.delete.text'), ok: t('common.delete'), act: () => act(() => remove(one.name), t('common.deleted', { name: one.name }), [KEY]) })}>{t('common.delete')}<span className="hidden"> {one.name}</span></Act> },
  ]
  const check = (_: unknown, text: string | undefined): Promise<void> => {
    const wrong = (text ?? '').split('\n').findIndex((line) => line.trim() !== '' && !/^[^=\s]+=/.test(line))
    return wrong < 0 ? Promise.resolve() : Promise.reject(new Error(t('backfill.parameters.wrong', { line: wrong + 1 })))
  }
  const adding = <Act refusal={refusal} type="primary" onClick={() => setOpen('new')}>{t('admin.environments.add')}</Act>
  return (
    <div className="stack">
      <div className="section-head"><p className="lead">{t('admin.environments.text')}</p>{list.rows.length ? adding : null}</div>
      <ListTable list={list} label={t('admin.environments')} columns={columns} rowKey={(one) => one.name} onOpen={setOpen} empty={<Empty title={t('admin.environments.none')} action={adding} />} />
      {open ? (
        <FormDrawer<EnvironmentForm> wide title={row?.name ?? t('admin.environments.add')} submit={t('common.save')} refusal={refusal} onClose={() => setOpen(null)} onSave={save} {...(row ? { load: () => load(row.name) } : {})}>
          <Form.Item name="name" label={t('common.name')} rules={[{ required: true, whitespace: true, message: t('start.required') }]}><Input autoFocus={row === null} disabled={row !== null} /></Form.Item>
          <Form.Item name="description" label={t('common.description')}><Input /></Form.Item>
          <Form.Item name="python" label={t('admin.environments.python')} extra={t('admin.environments.python.hint')}><Input className="mono" placeholder="/opt/venvs/ml" /></Form.Item>
          <Form.Item name="variables" label={t('admin.environments.variables')} rules={[{ validator: check }]}><Input.TextArea className="mono" autoSize={{ minRows: 3, maxRows: 16 }} spellCheck={false} /></Form.Item>
          <Form.Item name="setup" label={t('admin.environments.setup')}><Input.TextArea className="mono" autoSize={{ minRows: 3, maxRows: 16 }} spellCheck={false} /></Form.Item>
          <Form.Item name="worker_groups" label={t('admin.environments.groups')}><Select mode="tags" placeholder={t('admin.environments.groups.all')} /></Form.Item>
          {row && users.length ? <p><span className="dim">{t('admin.environments.used')}</span> {users.join(', ')}</p> : null}
        </FormDrawer>
      ) : null}
    </div>
  )
}

function pairs(text: string): Record<string, string> {
  return Object.fromEntries(text.split('\n').filter((line) => line.includes('=')).map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1)]))
}
