/** Tokens of an account: what they may do, when they end, and a new one, which is shown once. */
import { useQuery } from '@tanstack/react-query'
import { Alert, App, Button, Drawer, Form, Input, Modal, Select } from 'antd'
import { useState } from 'react'
import { api, take } from '@/api/client'
import type { Permission, Token } from '@/api/types'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { useWidth, type Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'
import { ListTable, pagesOf, useRows } from './lists'
import { Act } from './marks'
import { projects as projectsOf } from './queries'
import { FormDrawer, useAsk, useDo } from './saving'

/** Whose tokens: one's own, those of a service account, or (to be revoked) those of a user. */
export type Owner = 'me' | { project: string; name: string } | { user: string }

const LIMIT = 200
const DAYS = [7, 30, 90, 365] as const
export const PERMISSIONS: readonly Permission[] = [
  'project.read', 'run.operate', 'project.edit', 'connection.edit', 'project.manage',
  'cluster.read', 'cluster.operate', 'project.create', 'history.purge', 'environment.edit', 'user.manage', 'audit.read', 'secrets.rotate',
]

interface TokenForm {
  name: string
  days: number
  permissions?: Permission[]
  projects?: string[]
}

export function Tokens({ of, refusal = null }: { of: Owner; refusal?: string | null }) {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const key = ['tokens', of] as const
  const list = useRows<Token>(pagesOf(key, (cursor) => asked(of, cursor)))
  const { data: projects } = useQuery(projectsOf)
  const [isOpen, setOpen] = useState(false)
  const [made, setMade] = useState<string | null>(null)
  const canAdd = of === 'me' || 'project' in of
  const save = async ({ name, days, permissions, projects: some }: TokenForm): Promise<void> => {
    const body = { name, days: days || null, permissions: permissions?.length ? permissions : null, projects: some?.length ? some : null }
    const { token } = of === 'me' ? await take(api.POST('/api/v1/me/tokens', { body })) : 'project' in of ? await take(api.POST('/api/v1/projects/{project}/service-accounts/{name}/tokens', { params: { path: of }, body })) : { token: '' }
    setMade(token)
    list.again()
  }
  const columns: Column<Token>[] = [
    { key: 'name', title: t('tokens.name'), width: 'minmax(110px, 1.4fr)', render: (row) => <span className="cut">{row.name}</span> },
    { key: 'scope', title: t('tokens.scope'), width: 'minmax(90px, 1.4fr)', hide: 'narrow', render: (row) => <span className="dim cut" title={scope(row)}>{scope(row) || t('tokens.scope.none')}</span> },
    { key: 'expires', title: t('tokens.expires'), width: 'minmax(150px, 1fr)', render: (row) => (row.expires_at ? <Time at={row.expires_at} /> : t('tokens.never')) },
    { key: 'used', title: t('tokens.used'), width: 'minmax(150px, 1fr)', hide: 'medium', render: (row) => (row.used_at ? <Time at={row.used_at} /> : <span className="dim">{t('tokens.never')}</span>) },
    {
      key: 'ways',
      title: <span className="hidden">{t('tokens.revoke')}</span>,
      width: '84px',
      render: (row) => (
        <Act size="small" type="text" danger refusal={refusal} onClick={() => ask({ title: `${t('tokens.revoke')}: ${row.name}`, text: t('tokens.revoke.text'), ok: t('tokens.revoke'), act: () => act(() => revoke(of, row.id), t('tokens.revoked'), [key]) })}>
          {t('tokens.revoke')}<span className="hidden"> {row.name}</span>
        </Act>
      ),
    },
  ]
  const adding = canAdd ? <Act refusal={refusal} type="primary" onClick={() => setOpen(true)}>{t('tokens.add')}</Act> : null
  return (
    <div className="stack">
      <div className="section-head"><p className="lead">{t('tokens.text')}</p>{list.rows.length ? adding : null}</div>
      <ListTable list={list} label={t('tokens.title')} columns={columns} rowKey={(row) => row.id} empty={<Empty title={t('tokens.none')} action={adding} />} />
      {isOpen ? (
        <FormDrawer<TokenForm> title={t('tokens.add')} initial={{ days: 90 }} submit={t('tokens.create')} refusal={refusal} onClose={() => setOpen(false)} onSave={save}>
          <Form.Item name="name" label={t('tokens.name')} rules={[{ required: true, whitespace: true, message: t('start.required') }]}><Input autoFocus placeholder="nightly import" /></Form.Item>
          <Form.Item name="days" label={t('tokens.days')}><Select options={[...DAYS.map((value) => ({ value: value, label: t('tokens.days.count', { count: value }) })), { value: 0, label: t('tokens.days.never') }]} /></Form.Item>
          <Form.Item name="permissions" label={t('tokens.permissions')}><Select mode="multiple" allowClear placeholder={t('tokens.permissions.all')} options={PERMISSIONS.map((value) => ({ value, label: value }))} /></Form.Item>
          <Form.Item name="projects" label={t('tokens.projects')}><Select mode="multiple" allowClear placeholder={t('tokens.projects.all')} options={(projects?.items ?? []).map(({ name: value }) => ({ value, label: value }))} /></Form.Item>
        </FormDrawer>
      ) : null}
      {made === null ? null : <Once title={t('tokens.add')} text={made} onClose={() => setMade(null)} />}
    </div>
  )
}

/** The same in a drawer. */
export function TokenList({ of, refusal, onClose }: { of: Owner; refusal: string | null; onClose: () => void }) {
  const t = useT()
  const width = useWidth()
  const name = of === 'me' ? '' : 'user' in of ? of.user : `${of.project}/${of.name}`
  return <Drawer open onClose={onClose} size={Math.min(width, 860)} title={`${t('tokens.title')} · ${name}`} destroyOnHidden><Tokens of={of} refusal={refusal} /></Drawer>
}

/** Something that is shown once: a token, a password. */
export function Once({ title, text, onClose }: { title: string; text: string; onClose: () => void }) {
  const t = useT()
  const { message } = App.useApp()
  const copy = (): void => void navigator.clipboard.writeText(text).then(() => message.success(t('tokens.copied')))
  return (
    <Modal open title={title} onCancel={onClose} mask={{ closable: false }} footer={<><Button onClick={copy} type="primary">{t('tokens.copy')}</Button><Button onClick={onClose}>{t('common.close')}</Button></>}>
      <Alert type="warning" showIcon title={t('tokens.once')} />
      <Input.TextArea readOnly className="mono once" aria-label={title} autoSize value={text} onFocus={(event) => event.target.select()} data-once />
    </Modal>
  )
}

function scope(token: Token): string {
  return [...(token.permissions ?? []), ...(token.projects ?? [])].join(', ')
}

function asked(of: Owner, cursor: string | undefined) {
  const query = { limit: LIMIT, cursor }
  if (of === 'me') return take(api.GET('/api/v1/me/tokens', { params: { query } }))
  if ('user' in of) return take(api.GET('/api/v1/users/{name}/tokens', { params: { path: { name: of.user }, query } }))
  return take(api.GET('/api/v1/projects/{project}/service-accounts/{name}/tokens', { params: { path: of, query } }))
}

function revoke(of: Owner, id: number): Promise<unknown> {
  if (of === 'me') return take(api.DELETE('/api/v1/me/tokens/{token_id}', { params: { path: { token_id: id } } }))
  if ('user' in of) return take(api.DELETE('/api/v1/users/{name}/tokens/{token_id}', { params: { path: { name: of.user, token_id: id } } }))
  return take(api.DELETE('/api/v1/projects/{project}/service-accounts/{name}/tokens/{token_id}', { params: { path: { ...of, token_id: id } } }))
}
