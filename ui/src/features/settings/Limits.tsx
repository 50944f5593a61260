/** Calendars and concurrency groups: what holds runs and tasks back. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Form, Input, InputNumber } from 'antd'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { Calendar, ConcurrencyGroup } from '@/api/types'
import { useRows } from '@/entities/lists'
import { StateMark } from '@/entities/marks'
import { FormDrawer } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { calendars, concurrencyGroup, concurrencyGroups, keyOf } from './queries'
import { Section } from './Section'
import { useRequired } from './Values'

interface CalendarForm {
  name: string
  description: string
  days: string
}

/** Returns the days that are written in lines, or the number of the line that is none. */
export function daysIn(text: string): string[] | number {
  const lines = text.split('\n').map((line) => line.trim())
  const wrong = lines.findIndex((line) => line !== '' && (!/^\d{4}-\d\d-\d\d$/.test(line) || Number.isNaN(Date.parse(line))))
  return wrong < 0 ? [...new Set(lines.filter(Boolean))].sort() : wrong + 1
}

export function Calendars({ project }: { project: string }) {
  const t = useT()
  const queries = useQueryClient()
  const list = useRows<Calendar>(calendars(project))
  const required = useRequired()
  const at = (name: string) => ({ path: { project, name } })
  const load = (name: string) => takeTagged(api.GET('/api/v1/projects/{project}/calendars/{name}', { params: at(name) }))
  const check = (_: unknown, text: string): Promise<void> => {
    const days = daysIn(text ?? '')
    return typeof days === 'number' ? Promise.reject(new Error(t('settings.calendars.wrong', { line: days }))) : Promise.resolve()
  }
  const save = async ({ name, description, days }: CalendarForm, etag: string | undefined): Promise<void> => {
    const found = daysIn(days)
    await take(api.PUT('/api/v1/projects/{project}/calendars/{name}', { params: { ...at(name), header: onlyIf(etag) }, body: { description: description ?? '', days: typeof found === 'number' ? [] : found } }))
    await queries.invalidateQueries({ queryKey: keyOf(project, 'calendars') })
    await queries.invalidateQueries({ queryKey: ['schedules'] })
  }
  const remove = async ({ name }: Calendar): Promise<void> => {
    const { etag } = await load(name)
    await take(api.DELETE('/api/v1/projects/{project}/calendars/{name}', { params: { ...at(name), header: onlyIf(etag) } }))
  }
  return (
    <Section
      project={project}
      needed="project.edit"
      list={list}
      label={t('settings.calendars')}
      text={t('settings.calendars.text')}
      none={t('settings.calendars.none')}
      add={t('settings.calendars.add')}
      edit={t('common.edit')}
      nameOf={(row) => row.name}
      renew={[keyOf(project, 'calendars')]}
      columns={[
        { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (row) => row.name },
        { key: 'days', title: t('settings.calendars.days'), width: '90px', render: (row) => <span className="num">{t('settings.calendars.count', { count: row.days.length })}</span> },
        { key: 'text', title: t('common.description'), width: 'minmax(100px, 2fr)', hide: 'narrow', render: (row) => <span className="dim">{row.description}</span> },
        { key: 'at', title: t('common.changed'), width: 'minmax(190px, 1fr)', hide: 'medium', render: (row) => <Time at={row.updated_at} /> },
      ]}
      remove={{ text: t('settings.delete.text'), act: remove }}
      form={(row, close, refusal) => (
        <FormDrawer<CalendarForm>
          title={row?.name ?? t('settings.calendars.add')}
          submit={t('common.save')}
          refusal={refusal}
          onClose={close}
          onSave={save}
          {...(row ? { load: async () => { const { value, etag } = await load(row.name); return { value: { ...value, days: value.days.join('\n') }, etag } } } : {})}
        >
          <Form.Item name="name" label={t('common.name')} rules={[required]}><Input disabled={row !== null} autoFocus={row === null} /></Form.Item>
          <Form.Item name="description" label={t('common.description')}><Input /></Form.Item>
          <Form.Item name="days" label={t('settings.calendars.days')} rules={[required, { validator: check }]}><Input.TextArea className="mono" autoSize={{ minRows: 8, maxRows: 24 }} placeholder="2026-12-25" /></Form.Item>
        </FormDrawer>
      )}
    />
  )
}

export function ConcurrencyGroups({ project }: { project: string }) {
  const t = useT()
  const queries = useQueryClient()
  const list = useRows<ConcurrencyGroup>(concurrencyGroups(project))
  const required = useRequired()
  const at = (name: string) => ({ path: { project, name } })
  const load = (name: string) => takeTagged(api.GET('/api/v1/projects/{project}/concurrency-groups/{name}', { params: at(name) }))
  const save = async ({ name, slots, description }: { name: string; slots: number; description: string }, etag: string | undefined): Promise<void> => {
    await take(api.PUT('/api/v1/projects/{project}/concurrency-groups/{name}', { params: { ...at(name), header: onlyIf(etag) }, body: { slots, description: description ?? '' } }))
    await queries.invalidateQueries({ queryKey: keyOf(project, 'groups') })
  }
  const remove = async ({ name }: ConcurrencyGroup): Promise<void> => {
    const { etag } = await load(name)
    await take(api.DELETE('/api/v1/projects/{project}/concurrency-groups/{name}', { params: { ...at(name), header: onlyIf(etag) } }))
  }
  return (
    <Section
      project={project}
      needed="project.edit"
      list={list}
      label={t('settings.groups')}
      text={t('settings.groups.text')}
      none={t('settings.groups.none')}
      add={t('settings.groups.add')}
      edit={t('common.edit')}
      nameOf={(row) => row.name}
      renew={[keyOf(project, 'groups')]}
      columns={[
        { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (row) => row.name },
        { key: 'slots', title: t('settings.groups.slots'), width: 'minmax(120px, 150px)', render: (row) => <span className="num">{t('settings.groups.used', { taken: row.taken, slots: row.slots })}</span> },
        { key: 'waiting', title: t('settings.groups.waiting'), width: '80px', hide: 'narrow', render: (row) => <span className="num">{row.waiting}</span> },
        { key: 'text', title: t('common.description'), width: 'minmax(100px, 2fr)', hide: 'medium', render: (row) => <span className="dim">{row.description}</span> },
      ]}
      remove={{ text: t('settings.delete.text'), act: remove }}
      form={(row, close, refusal) => (
        <FormDrawer<{ name: string; slots: number; description: string }>
          title={row?.name ?? t('settings.groups.add')}
          submit={t('common.save')}
          refusal={refusal}
          onClose={close}
          onSave={save}
          {...(row ? { load: () => load(row.name) } : { initial: { slots: 1 } })}
        >
          <Form.Item name="name" label={t('common.name')} rules={[required]}><Input disabled={row !== null} autoFocus={row === null} /></Form.Item>
          <Form.Item name="slots" label={t('settings.groups.slots')} rules={[{ required: true, message: t('start.required') }]}><InputNumber min={0} max={100000} precision={0} className="full" /></Form.Item>
          <Form.Item name="description" label={t('common.description')}><Input /></Form.Item>
          {row ? <SlotUsers project={project} name={row.name} /> : null}
        </FormDrawer>
      )}
    />
  )
}

function SlotUsers({ project, name }: { project: string; name: string }) {
  const t = useT()
  const { data } = useQuery(concurrencyGroup(project, name))
  if (!data) return null
  return ([['holders', data.holders], ['waiters', data.waiters]] as const).map(([key, users]) =>
    users.length ? (
      <div key={key}>
        <h2 className="form-head">{t(`settings.groups.${key}`)}</h2>
        <ul className="plain-list">
          {users.slice(0, 50).map((user) => (
            <li key={user.task_instance_id} className="row">
              <StateMark state={user.state} bare />
              <Link to="/runs/$id" params={{ id: String(user.workflow_instance_id) }} search={{ task: user.task }}>{user.workflow} #{user.workflow_instance_id} {user.task}</Link>
            </li>
          ))}
        </ul>
      </div>
    ) : null,
  )
}
