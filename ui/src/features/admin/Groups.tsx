/** Groups of users and service accounts. */
import { useQueryClient } from '@tanstack/react-query'
import { Form, Input, Select, Tag } from 'antd'
import { useState } from 'react'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { Group } from '@/api/types'
import { ListTable, pagesOf, useRows } from '@/entities/lists'
import { Act, useRefusal } from '@/entities/marks'
import { FormDrawer, useAsk, useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'

const LIMIT = 200
const KEY = ['user-groups']

interface GroupForm {
  name: string
  description?: string
  members?: string[]
}

export function Groups() {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const queries = useQueryClient()
  const refusal = useRefusal('user.manage')
  const list = useRows<Group>(pagesOf(KEY, (cursor) => take(api.GET('/api/v1/groups', { params: { query: { limit: LIMIT, cursor } } }))))
  const users = useRows(pagesOf(['users'], (cursor) => take(api.GET('/api/v1/users', { params: { query: { limit: LIMIT, cursor } } }))))
  const [open, setOpen] = useState<Group | 'new' | null>(null)
  const row = open === 'new' ? null : open
  const load = (name: string) => takeTagged(api.GET('/api/v1/groups/{name}', { params: { path: { name } } }))
  const save = async ({ name, description, members }: GroupForm, etag: string | undefined): Promise<void> => {
    if (!etag) await take(api.POST('/api/v1/groups', { body: { name, description: description ?? '' } }))
    else if ((description ?? '') !== row?.description) await take(api.PATCH('/api/v1/groups/{name}', { params: { path: { name }, header: onlyIf(etag) }, body: { description: description ?? '' } }))
    // Members come and go one by one: what others change meanwhile stays.
    const before = new Set(row?.members)
    const after = new Set(members)
    for (const member of after) if (!before.has(member)) await take(api.PUT('/api/v1/groups/{name}/members/{member}', { params: { path: { name, member } } }))
    for (const member of before) if (!after.has(member)) await take(api.DELETE('/api/v1/groups/{name}/members/{member}', { params: { path: { name, member } } }))
    await queries.invalidateQueries({ queryKey: KEY })
  }
  const remove = async (name: string): Promise<void> => {
    const { etag } = await load(name)
    await take(api.DELETE('/api/v1/groups/{name}', { params: { path: { name }, header: onlyIf(etag) } }))
  }
  const columns: Column<Group>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(100px, 1fr)', render: (one) => <strong>{one.name}</strong> },
    { key: 'members', title: t('admin.groups.members'), width: 'minmax(120px, 2fr)', render: (one) => <span className="cut">{one.members.map((name) => <Tag key={name}>{name}</Tag>)}</span> },
    { key: 'text', title: t('common.description'), width: 'minmax(100px, 1.4fr)', hide: 'medium', render: (one) => <span className="dim">{one.description}</span> },
    { key: 'ways', title: <span className="hidden">{t('common.delete')}</span>, width: '76px', render: (one) => <Act size="small" type="text" danger refusal={refusal} onClick={() => ask({ title: `${t('common.delete')}: ${one.name}`, text: t('settings.delete.text'), ok: t('common.delete'), act: () => act(() => remove(one.name), t('common.deleted', { name: one.name }), [KEY]) })}>{t('common.delete')}<span className="hidden"> {one.name}</span></Act> },
  ]
  const adding = <Act refusal={refusal} type="primary" onClick={() => setOpen('new')}>{t('admin.groups.add')}</Act>
  return (
    <div className="stack">
      <div className="section-head"><p className="lead">{t('admin.groups.text')}</p>{list.rows.length ? adding : null}</div>
      <ListTable list={list} label={t('admin.groups')} columns={columns} rowKey={(one) => one.name} onOpen={setOpen} empty={<Empty title={t('admin.groups.none')} action={adding} />} />
      {open ? (
        <FormDrawer<GroupForm> title={row?.name ?? t('admin.groups.add')} submit={t('common.save')} refusal={refusal} onClose={() => setOpen(null)} onSave={save} {...(row ? { load: () => load(row.name) } : {})}>
          <Form.Item name="name" label={t('common.name')} rules={[{ required: true, whitespace: true, message: t('start.required') }]}><Input autoFocus={row === null} disabled={row !== null} /></Form.Item>
          <Form.Item name="description" label={t('common.description')}><Input /></Form.Item>
          <Form.Item name="members" label={t('admin.groups.members')} extra={t('admin.groups.members.hint')}><Select mode="tags" options={users.rows.map(({ name: value }) => ({ value, label: value }))} /></Form.Item>
        </FormDrawer>
      ) : null}
    </div>
  )
}
