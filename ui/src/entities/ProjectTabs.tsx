/** The ways within a project, on each of its pages. */
import { Link } from '@tanstack/react-router'
import { useT } from '@/shared/i18n'

type Here = 'map' | 'resources' | 'sources' | 'settings'

export function ProjectTabs({ project, here }: { project: string; here: Here }) {
  const t = useT()
  const of = (name: Here): { 'aria-current'?: 'page'; className: string } => (name === here ? { 'aria-current': 'page', className: 'sub-nav-item here' } : { className: 'sub-nav-item' })
  return (
    <nav className="sub-nav" aria-label={t('nav.project', { name: project })}>
      <Link className="sub-nav-item" to="/workflows" search={{ project }}>{t('nav.workflows')}</Link>
      <Link className="sub-nav-item" to="/runs" search={{ project }}>{t('nav.runs')}</Link>
      <Link className="sub-nav-item" to="/alerts" search={{ project }}>{t('nav.alerts')}</Link>
      <Link className="sub-nav-item" to="/insight" search={{ project }}>{t('nav.insight')}</Link>
      <Link {...of('map')} to="/projects/$project/map" params={{ project }}>{t('map.title')}</Link>
      <Link {...of('resources')} to="/projects/$project/resources" params={{ project }}>{t('nav.resources')}</Link>
      <Link {...of('sources')} to="/projects/$project/data-sources" params={{ project }}>{t('nav.sources')}</Link>
      <Link {...of('settings')} to="/projects/$project/settings" params={{ project }}>{t('nav.settings')}</Link>
    </nav>
  )
}
