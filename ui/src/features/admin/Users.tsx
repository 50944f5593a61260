/** Users: who there is, how they sign in, what administrators do for them. */
import { useQueryClient } from '@tanstack/react-query'
import { Checkbox, Dropdown, Form, Input, Tag, Button } from 'antd'
import { useState } from 'react'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { Account } from '@/api/types'
import { ListTable, pagesOf, useRows } from '@/entities/lists'
import { Act, useRefusal } from '@/entities/marks'
import { FormDrawer, useAsk, useDo } from '@/entities/saving'
import { Once, TokenList } from '@/entities/Tokens'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'

const LIMIT = 200
const KEY = ['users']

interface UserForm {
  name: string
  full_name?: string
  is_admin?: boolean
  password?: string
}

export function Users() {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const queries = useQueryClient()
  const refusal = useRefusal('user.manage')
  const list = useRows<Account>(pagesOf(KEY, (cursor) => take(api.GET('/api/v1/users', { params: { query: { limit: LIMIT, cursor } } }))))
  const [open, setOpen] = useState<Account | 'new' | null>(null)
  const [tokens, setTokens] = useState<string | null>(null)
  const [once, setOnce] = useState<{ name: string; password: string } | null>(null)
  const at = (name: string) => ({ path: { name } })
  const load = (name: string) => takeTagged(api.GET('/api/v1/users/{name}', { params: at(name) }))
  const show = ({ name, password }: { name: string; password: string | null }): void => {
    if (password !== null) setOnce({ name, password })
  }
  const save = async (values: UserForm, etag: string | undefined): Promise<void> => {
    const body = { full_name: values.full_name ?? '', is_admin: values.is_admin ?? false }
    if (etag) await take(api.PATCH('/api/v1/users/{name}', { params: { ...at(values.name), header: onlyIf(etag) }, body }))
    else show(await take(api.POST('/api/v1/users', { body: { name: values.name, ...body, password: values.password || null } })))
    await queries.invalidateQueries({ queryKey: KEY })
  }
  const disable = async (name: string, disabled: boolean): Promise<void> => {
    const { etag } = await load(name)
    await take(api.PATCH('/api/v1/users/{name}', { params: { ...at(name), header: onlyIf(etag) }, body: { disabled } }))
  }
  const choose = (way: string, row: Account): void => {
    const { name } = row
    if (way === 'edit') setOpen(row)
    if (way === 'tokens') setTokens(name)
    if (way === 'enable') void act(() => disable(name, false), t('common.saved', { name }), [KEY])
    if (way === 'disable') ask({ title: `${t('admin.users.disable')}: ${name}`, text: t('admin.users.disable.text'), ok: t('admin.users.disable'), act: () => act(() => disable(name, true), t('common.saved', { name }), [KEY]) })
    if (way === 'reset') ask({ title: `${t('admin.users.reset')}: ${name}`, text: t('admin.users.reset.text'), ok: t('admin.users.reset'), act: () => act(async () => show(await take(api.POST('/api/v1/users/{name}/password-reset', { params: at(name) }))), t('common.saved', { name }), [KEY]) })
  }
  const columns: Column<Account>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (row) => <span className="row"><strong>{row.name}</strong>{row.is_admin ? <Tag>{t('shell.admin')}</Tag> : null}</span> },
    { key: 'full', title: t('admin.users.fullName'), width: 'minmax(110px, 1.2fr)', hide: 'narrow', render: (row) => <span className="cut">{row.full_name}</span> },
    { key: 'state', title: t('common.state'), width: '110px', render: (row) => (row.disabled_at ? <Tag>{t('admin.users.disabled')}</Tag> : <Tag color="success">{t('admin.users.active')}</Tag>) },
    { key: 'signs', title: t('admin.users.signsIn'), width: 'minmax(110px, 1.2fr)', hide: 'medium', render: (row) => <span className="dim cut">{row.issuer ?? (row.must_change_password ? t('admin.users.mustChange') : row.has_password ? t('admin.users.byPassword') : '–')}</span> },
    { key: 'at', title: t('common.created'), width: 'minmax(190px, 210px)', hide: 'medium', render: (row) => <Time at={row.created_at} /> },
    {
      key: 'ways',
      title: <span className="hidden">{t('common.edit')}</span>,
      width: '44px',
      render: (row) => (
        <Dropdown
          trigger={['click']}
          menu={{
            items: [
              { key: 'edit', label: t('common.edit') },
              { key: 'tokens', label: t('tokens.title') },
              { key: 'reset', label: t('admin.users.reset'), disabled: row.disabled_at !== null || row.issuer !== null },
              row.disabled_at ? { key: 'enable', label: t('admin.users.enable') } : { key: 'disable', label: t('admin.users.disable'), danger: true },
            ],
            onClick: ({ key }) => choose(key, row),
          }}
        >
          <Button size="small" type="text" aria-label={`${t('common.edit')} ${row.name}`}>⋯</Button>
        </Dropdown>
      ),
    },
  ]
  const adding = <Act refusal={refusal} type="primary" onClick={() => setOpen('new')}>{t('admin.users.add')}</Act>
  const row = open === 'new' ? null : open
  return (
    <div className="stack">
      <div className="section-head"><p className="lead">{t('admin.users.text')}</p>{adding}</div>
      <ListTable list={list} label={t('admin.users')} columns={columns} rowKey={(one) => one.name} onOpen={setOpen} empty={<Empty title={t('admin.users.none')} />} />
      {open ? (
        <FormDrawer<UserForm> title={row?.name ?? t('admin.users.add')} submit={t('common.save')} refusal={refusal} onClose={() => setOpen(null)} onSave={save} {...(row ? { load: () => load(row.name) } : {})}>
          <Form.Item name="name" label={t('login.name')} rules={[{ required: true, whitespace: true, message: t('start.required') }]}><Input autoFocus={row === null} disabled={row !== null} autoComplete="off" /></Form.Item>
          <Form.Item name="full_name" label={t('admin.users.fullName')}><Input autoComplete="off" /></Form.Item>
          {row ? null : <Form.Item name="password" label={t('admin.users.password')} extra={t('admin.users.password.hint')}><Input.Password autoComplete="new-password" /></Form.Item>}
          <Form.Item name="is_admin" valuePropName="checked"><Checkbox>{t('admin.users.isAdmin')}</Checkbox></Form.Item>
        </FormDrawer>
      ) : null}
      {tokens ? <TokenList of={{ user: tokens }} refusal={refusal} onClose={() => setTokens(null)} /> : null}
      {once ? <Once title={t('admin.users.passwordOf', { name: once.name })} text={once.password} onClose={() => setOnce(null)} /> : null}
    </div>
  )
}
