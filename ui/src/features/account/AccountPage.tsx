/** One's own account: roles, password, sessions in browsers, tokens of programs. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Alert, Button, Tabs, Tag } from 'antd'
import type { ReactNode } from 'react'
import { api, take } from '@/api/client'
import type { Session } from '@/api/types'
import { ListTable, pagesOf, useRows } from '@/entities/lists'
import { me as meOf } from '@/entities/queries'
import { useAsk, useDo } from '@/entities/saving'
import { Tokens } from '@/entities/Tokens'
import { useNamed, useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty, Facts, Loading, PageHead, Panel } from '@/shared/ui/parts'

export type AccountTab = 'profile' | 'sessions' | 'tokens'
const LIMIT = 100

export function AccountPage({ tab, onTab }: { tab: AccountTab | undefined; onTab: (tab: AccountTab) => void }) {
  const t = useT()
  const named = useNamed()
  const { data: who } = useQuery(meOf)
  if (!who) return <Loading />
  const isUser = who.kind === 'USER'
  return (
    <div className="page-fill">
      <PageHead title={t('account.title')} mark={<span className="dim">{who.name}</span>} />
      {isUser ? null : <Alert type="info" showIcon title={t('account.breakGlass')} />}
      <Tabs
        className="fill-tabs"
        activeKey={isUser ? (tab ?? 'profile') : 'profile'}
        onChange={(key) => onTab(key as AccountTab)}
        destroyOnHidden
        items={[
          {
            key: 'profile',
            label: t('account.profile'),
            children: (
              <div className="columns">
                <Panel title={t('account.profile')}>
                  <Facts
                    items={[
                      [t('common.name'), who.name],
                      [t('account.kind'), <>{named('kind', who.kind)} {who.is_admin ? <Tag key="a">{t('shell.admin')}</Tag> : null}</>],
                      ...(isUser ? [[t('account.password'), who.has_password ? <Link key="p" to="/password">{t('shell.changePassword')}</Link> : who.issuer ? t('account.isElsewhere', { issuer: who.issuer }) : '–'] as [string, ReactNode]] : []),
                    ]}
                  />
                </Panel>
                <Panel title={t('account.roles')}>
                  {who.roles.length ? <Facts items={who.roles.map((one) => [<Link key="p" to="/workflows" search={{ project: one.project }}>{one.project}</Link>, named('role', one.role)])} /> : <p className="dim">{who.is_admin ? t('shell.admin') : t('account.noRoles')}</p>}
                </Panel>
              </div>
            ),
          },
          ...(isUser
            ? [
                { key: 'sessions', label: t('sessions.title'), children: <Sessions /> },
                { key: 'tokens', label: t('tokens.title'), children: <Tokens of="me" /> },
              ]
            : []),
        ]}
      />
    </div>
  )
}

function Sessions() {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const key = ['sessions']
  const list = useRows<Session>(pagesOf(key, (cursor) => take(api.GET('/api/v1/me/sessions', { params: { query: { limit: LIMIT, cursor } } }))))
  const end = (row: Session): void =>
    ask({ title: `${t('sessions.end')}: ${row.agent || row.address}`, text: t('sessions.end.text'), ok: t('sessions.end'), act: () => act(() => take(api.DELETE('/api/v1/me/sessions/{session_id}', { params: { path: { session_id: row.id } } })), t('sessions.ended'), [key]) })
  const columns: Column<Session>[] = [
    { key: 'agent', title: t('sessions.agent'), width: 'minmax(140px, 2fr)', render: (row) => <span className="row"><span className="cut" title={row.agent}>{row.agent || '–'}</span>{row.is_this ? <Tag color="success">{t('sessions.this')}</Tag> : null}</span> },
    { key: 'address', title: t('sessions.address'), width: '130px', hide: 'narrow', render: (row) => <span className="mono dim">{row.address}</span> },
    { key: 'used', title: t('sessions.used'), width: 'minmax(150px, 210px)', render: (row) => <Time at={row.used_at} /> },
    { key: 'ends', title: t('sessions.expires'), width: 'minmax(190px, 210px)', hide: 'medium', render: (row) => <Time at={row.expires_at} /> },
    { key: 'ways', title: <span className="hidden">{t('sessions.end')}</span>, width: '64px', render: (row) => (row.is_this ? null : <Button size="small" type="text" danger onClick={() => end(row)}>{t('sessions.end')}</Button>) },
  ]
  return (
    <div className="stack">
      <p className="lead">{t('sessions.text')}</p>
      <ListTable list={list} label={t('sessions.title')} columns={columns} rowKey={(row) => row.id} empty={<Empty title={t('sessions.none')} />} />
    </div>
  )
}
