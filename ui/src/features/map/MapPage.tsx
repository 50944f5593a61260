/** What waits for what in a project on a day. */
import { DependencyMap, type MapView } from '@/entities/DependencyMap'
import { ProjectTabs } from '@/entities/ProjectTabs'
import { useT } from '@/shared/i18n'
import { useZone } from '@/shared/time/Time'
import { PageHead } from '@/shared/ui/parts'

interface Props extends MapView {
  project: string
  onView: (to: MapView) => void
  onRun: (id: number) => void
}

export function MapPage({ project, onView, onRun, ...view }: Props) {
  const t = useT()
  const zone = useZone()
  return (
    <div className="page-fill">
      <PageHead crumbs={project} title={t('map.title')} />
      <ProjectTabs project={project} here="map" />
      <DependencyMap project={project} zone={zone} {...view} onView={onView} onRun={onRun} />
    </div>
  )
}
