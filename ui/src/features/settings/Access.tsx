/** Who may do what in a project: members, other projects, service accounts. */
import { useQueryClient } from '@tanstack/react-query'
import { AutoComplete, Button, Form, Input, Segmented, Select, Tag } from 'antd'
import { useState } from 'react'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { Account, GrantGiven, Member, Role } from '@/api/types'
import { useRows } from '@/entities/lists'
import { useRefusal } from '@/entities/marks'
import { FormDrawer } from '@/entities/saving'
import { TokenList } from '@/entities/Tokens'
import { useNamed, useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { accounts, grants, keyOf, members } from './queries'
import { Section } from './Section'
import { useRequired } from './Values'

const ROLES: readonly Role[] = ['reader', 'runner', 'writer', 'owner']
type Kind = Member['kind']
const KINDS: readonly Kind[] = ['user', 'group', 'service-account']

export function Members({ project }: { project: string }) {
  const t = useT()
  const named = useNamed()
  const queries = useQueryClient()
  const list = useRows<Member>(members(project))
  const required = useRequired()
  const at = (kind: Kind, name: string) => ({ path: { project, kind, name } })
  const load = (row: Member) => takeTagged(api.GET('/api/v1/projects/{project}/members/{kind}/{name}', { params: at(row.kind, row.name) }))
  const save = async ({ kind, name, role }: Member, etag: string | undefined): Promise<void> => {
    await take(api.PUT('/api/v1/projects/{project}/members/{kind}/{name}', { params: { ...at(kind, name), header: onlyIf(etag) }, body: { role } }))
    await queries.invalidateQueries({ queryKey: keyOf(project, 'members') })
  }
  const remove = async (row: Member): Promise<void> => {
    const { etag } = await load(row)
    await take(api.DELETE('/api/v1/projects/{project}/members/{kind}/{name}', { params: { ...at(row.kind, row.name), header: onlyIf(etag) } }))
  }
  return (
    <Section
      project={project}
      needed="project.manage"
      list={list}
      label={t('settings.members')}
      text={t('settings.members.text')}
      none={t('settings.members.none')}
      add={t('settings.members.add')}
      edit={t('common.edit')}
      nameOf={(row) => `${row.kind} ${row.name}`}
      renew={[keyOf(project, 'members')]}
      columns={[
        { key: 'name', title: t('common.name'), width: 'minmax(110px, 1.4fr)', render: (row) => row.name },
        { key: 'kind', title: t('settings.members.kind'), width: 'minmax(90px, 1fr)', hide: 'narrow', render: (row) => <span className="dim">{named('kind', row.kind)}</span> },
        { key: 'role', title: t('settings.members.role'), width: 'minmax(70px, 1fr)', render: (row) => <Tag>{row.role}</Tag> },
      ]}
      remove={{ text: t('settings.delete.text'), act: remove }}
      form={(row, close, refusal) => (
        <FormDrawer<Member> title={row?.name ?? t('settings.members.add')} submit={t('common.save')} refusal={refusal} onClose={close} onSave={save} {...(row ? { load: () => load(row) } : { initial: { kind: 'user', role: 'reader' } })}>
          <Form.Item name="kind" label={t('settings.members.kind')}><Segmented disabled={row !== null} options={KINDS.map((value) => ({ value, label: named('kind', value) }))} /></Form.Item>
          <Form.Item name="name" label={t('common.name')} rules={[required]}><Input disabled={row !== null} autoFocus={row === null} /></Form.Item>
          <Form.Item name="role" label={t('settings.members.role')}><Select options={ROLES.map((value) => ({ value, label: named('role', value) }))} /></Form.Item>
        </FormDrawer>
      )}
    />
  )
}

export function Grants({ project, projects }: { project: string; projects: readonly string[] }) {
  const t = useT()
  const named = useNamed()
  const queries = useQueryClient()
  const list = useRows<GrantGiven>(grants(project))
  const required = useRequired()
  const at = (taker: string) => ({ path: { project, taker } })
  const load = (taker: string) => takeTagged(api.GET('/api/v1/projects/{project}/grants/{taker}', { params: at(taker) }))
  const save = async ({ project: taker, what }: GrantGiven, etag: string | undefined): Promise<void> => {
    await take(api.PUT('/api/v1/projects/{project}/grants/{taker}', { params: { ...at(taker), header: onlyIf(etag) }, body: { what } }))
    await queries.invalidateQueries({ queryKey: keyOf(project, 'grants') })
  }
  const remove = async (row: GrantGiven): Promise<void> => {
    const { etag } = await load(row.project)
    await take(api.DELETE('/api/v1/projects/{project}/grants/{taker}', { params: { ...at(row.project), header: onlyIf(etag) } }))
  }
  return (
    <Section
      project={project}
      needed="project.manage"
      list={list}
      label={t('settings.grants')}
      text={t('settings.grants.text')}
      none={t('settings.grants.none')}
      add={t('settings.grants.add')}
      edit={t('common.edit')}
      nameOf={(row) => row.project}
      renew={[keyOf(project, 'grants')]}
      columns={[
        { key: 'project', title: t('common.project'), width: 'minmax(110px, 1.4fr)', render: (row) => row.project },
        { key: 'what', title: t('settings.grants.what'), width: 'minmax(120px, 2fr)', render: (row) => named('grant', row.what) },
        { key: 'at', title: t('common.created'), width: 'minmax(190px, 1fr)', hide: 'medium', render: (row) => <Time at={row.created_at} /> },
      ]}
      remove={{ text: t('settings.delete.text'), act: remove }}
      form={(row, close, refusal) => (
        <FormDrawer<GrantGiven> title={row?.project ?? t('settings.grants.add')} submit={t('common.save')} refusal={refusal} onClose={close} onSave={save} {...(row ? { load: () => load(row.project) } : { initial: { what: 'see' } })}>
          <Form.Item name="project" label={t('settings.grants.taker')} rules={[required]}><AutoComplete disabled={row !== null} options={projects.filter((one) => one !== project).map((value) => ({ value }))} /></Form.Item>
          <Form.Item name="what" label={t('settings.grants.what')}><Select options={(['see', 'run'] as const).map((value) => ({ value, label: named('grant', value) }))} /></Form.Item>
        </FormDrawer>
      )}
    />
  )
}

export function ServiceAccounts({ project }: { project: string }) {
  const t = useT()
  const named = useNamed()
  const queries = useQueryClient()
  const list = useRows<Account>(accounts(project))
  const required = useRequired()
  const refusal = useRefusal('project.manage', project)
  const [open, setOpen] = useState<string | null>(null)
  const short = (row: Account): string => row.name.split('/').at(-1) ?? row.name
  const save = async (values: { name: string; role: Role }): Promise<void> => {
    await take(api.POST('/api/v1/projects/{project}/service-accounts', { params: { path: { project } }, body: values }))
    for (const what of ['accounts', 'members']) await queries.invalidateQueries({ queryKey: keyOf(project, what) })
  }
  return (
    <>
      <Section
        project={project}
        needed="project.manage"
        list={list}
        label={t('settings.accounts')}
        text={t('settings.accounts.text')}
        none={t('settings.accounts.none')}
        add={t('settings.accounts.add')}
        nameOf={(row) => row.name}
        renew={[keyOf(project, 'accounts')]}
        columns={[
          { key: 'name', title: t('common.name'), width: 'minmax(110px, 1.6fr)', render: (row) => row.name },
          { key: 'state', title: t('common.state'), width: '90px', render: (row) => (row.disabled_at ? <Tag>{t('settings.accounts.disabled')}</Tag> : null) },
          { key: 'at', title: t('common.created'), width: 'minmax(190px, 1fr)', hide: 'narrow', render: (row) => <Time at={row.created_at} /> },
          { key: 'tokens', title: t('tokens.title'), width: '90px', render: (row) => <Button size="small" type="text" onClick={() => setOpen(short(row))}>{t('tokens.title')}</Button> },
        ]}
        remove={{ text: t('settings.accounts.disable.text'), ok: t('settings.accounts.disable'), may: (row) => row.disabled_at === null, act: (row) => take(api.DELETE('/api/v1/projects/{project}/service-accounts/{name}', { params: { path: { project, name: short(row) } } })), done: t('settings.accounts.disabled') }}
        form={(_, close, may) => (
          <FormDrawer<{ name: string; role: Role }> title={t('settings.accounts.add')} submit={t('common.add')} refusal={may} initial={{ role: 'runner' }} onClose={close} onSave={save}>
            <Form.Item name="name" label={t('common.name')} rules={[required]}><Input autoFocus addonBefore={`${project}/`} /></Form.Item>
            <Form.Item name="role" label={t('settings.members.role')}><Select options={ROLES.map((value) => ({ value, label: named('role', value) }))} /></Form.Item>
          </FormDrawer>
        )}
      />
      {open ? <TokenList of={{ project, name: open }} refusal={refusal} onClose={() => setOpen(null)} /> : null}
    </>
  )
}
