/** All projects: where is what, and what may I do there. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Tag } from 'antd'
import { Trouble } from '@/entities/marks'
import { me as meOf, projects as projectsOf } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { Empty, Loading, PageHead } from '@/shared/ui/parts'

export function ProjectsPage() {
  const t = useT()
  const { data, error, refetch } = useQuery(projectsOf)
  const { data: who } = useQuery(meOf)
  const roleIn = (project: string): string => (who?.is_admin ? t('shell.admin') : (who?.roles.find((one) => one.project === project)?.role ?? ''))
  return (
    <>
      <PageHead title={t('projects.title')} />
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
              <span className="grow" />
              <span className="dim small"><Time at={one.created_at} /></span>
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}
