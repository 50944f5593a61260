/** All projects: where is what, and what may I do there. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Form, Input, Tag } from 'antd'
import { useState } from 'react'
import { api, onlyIf, take } from '@/api/client'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { me as meOf, projects as projectsOf } from '@/entities/queries'
import { FormDrawer } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { Empty, Loading, PageHead } from '@/shared/ui/parts'

export function ProjectsPage() {
  const t = useT()
  const { data, error, refetch } = useQuery(projectsOf)
  const { data: who } = useQuery(meOf)
  const queries = useQueryClient()
  const refusal = useRefusal('project.create')
  const [isNew, setNew] = useState(false)
  const create = async ({ name, description }: { name: string; description?: string }): Promise<void> => {
    await take(api.PUT('/api/v1/projects/{project}', { params: { path: { project: name }, header: onlyIf(undefined) }, body: { description: description ?? '' } }))
    await queries.invalidateQueries({ queryKey: ['projects'] })
  }
  const roleIn = (project: string): string => (who?.is_admin ? t('shell.admin') : (who?.roles.find((one) => one.project === project)?.role ?? ''))
  return (
    <>
      <PageHead title={t('projects.title')}><Act refusal={refusal} onClick={() => setNew(true)}>{t('projects.new')}</Act></PageHead>
      {isNew ? (
        <FormDrawer<{ name: string; description?: string }> title={t('projects.new')} submit={t('projects.create')} refusal={refusal} onClose={() => setNew(false)} onSave={create}>
          <Form.Item name="name" label={t('projects.name')} rules={[{ required: true, whitespace: true, message: t('start.required') }]}><Input autoFocus /></Form.Item>
          <Form.Item name="description" label={t('common.description')}><Input /></Form.Item>
        </FormDrawer>
      ) : null}
      {error ? <Trouble error={error} retry={() => void refetch()} /> : null}
      {!data && !error ? <Loading /> : null}
      {data && !data.items.length ? <Empty title={t('projects.empty')} /> : null}
      <ul className="cards">
        {data?.items.map((one) => (
          <li key={one.name} className="card">
            <Link to="/workflows" search={{ project: one.name }} className="card-name">{one.name}</Link>
            <p className="dim card-text">{one.description || '–'}</p>
            <div className="card-foot">
              <span className="num">{t('projects.workflows', { count: one.workflows })}</span>
              <Tag>{roleIn(one.name)}</Tag>
              <Link className="over" to="/projects/$project/settings" params={{ project: one.name }}>{t('nav.settings')}<span className="hidden"> {one.name}</span></Link>
              <span className="grow" />
              <span className="dim small"><Time at={one.created_at} /></span>
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}
