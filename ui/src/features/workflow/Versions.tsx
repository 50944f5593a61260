/** The history of a workflow: what differs between any two versions, and going back to one. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Button, Select, Tag, Tooltip } from 'antd'
import { useState } from 'react'
import { api, take } from '@/api/client'
import { Comparing } from '@/entities/Comparing'
import { Trouble, useRefusal } from '@/entities/marks'
import { version as versionOf, versions as versionsOf } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { Loading, Panel } from '@/shared/ui/parts'

interface Props {
  project: string
  name: string
  shown: number
  onShow: (version: number) => void
}

export function Versions({ project, name, shown, onShow }: Props) {
  const t = useT()
  const navigate = useNavigate()
  const refusal = useRefusal('project.edit', project)
  const { data, error } = useQuery(versionsOf(project, name))
  const [sides, setSides] = useState<{ from: number; to: number } | null>(null)
  if (error) return <Trouble error={error} />
  if (!data) return <Loading />
  const newest = data.items[0]?.version ?? 1
  const { from, to } = sides ?? { from: Math.max(0, newest - 1), to: newest }
  const options = data.items.map((one) => ({ value: one.version, label: `v${one.version}` }))
  return (
    <div className="stack">
      <ul className="versions">
        {data.items.map((one, index) => (
          <li key={one.version} className={one.version === shown ? 'chosen' : undefined}>
            <strong className="num">v{one.version}</strong>
            {index === 0 ? <Tag>{t('workflow.newest')}</Tag> : null}
            <Time at={one.created_at} />
            {one.published_by ? <span className="dim">{t('versions.by', { name: one.published_by })}</span> : null}
            <code className="dim wide-only">{one.digest.slice(0, 12)}</code>
            <span className="grow" />
            <Button size="small" onClick={() => setSides({ from: one.version - 1, to: one.version })}>{t('versions.compare')}</Button>
            {index === 0 ? null : refusal === null ? (
              <Button size="small" onClick={() => void navigate({ to: '/projects/$project/workflows/$name/edit', params: { project, name }, search: { view: 'code', restore: one.version } })}>{t('versions.restore')}</Button>
            ) : (
              <Tooltip title={refusal}><Button size="small" aria-disabled className="refused">{t('versions.restore')}<span className="hidden">: {refusal}</span></Button></Tooltip>
            )}
            <Button size="small" disabled={one.version === shown} onClick={() => onShow(one.version)}>{t('workflow.showVersion')}</Button>
          </li>
        ))}
      </ul>
      <Panel title={t('versions.compare')}>
        <div className="stack">
          <div className="versions-pick">
            <label htmlFor="from">{t('versions.from')}</label>
            <Select id="from" size="small" value={from} onChange={(value: number) => setSides({ from: value, to })} options={[...options, { value: 0, label: t('versions.nothing') }]} popupMatchSelectWidth={false} />
            <label htmlFor="to">{t('versions.to')}</label>
            <Select id="to" size="small" value={to} onChange={(value: number) => setSides({ from, to: value })} options={options} popupMatchSelectWidth={false} />
          </div>
          <Difference key={`${from}-${to}`} project={project} name={name} from={from} to={to} />
        </div>
      </Panel>
    </div>
  )
}

function Difference({ project, name, from, to }: { project: string; name: string; from: number; to: number }) {
  const diff = useQuery({
    queryKey: ['version', project, name, to, 'diff', from],
    queryFn: () => take(api.GET('/api/v1/projects/{project}/workflows/{name}/versions/{version}/diff', { params: { path: { project, name, version: to }, query: { base: from } } })),
    staleTime: Infinity,
  })
  const before = useQuery({ ...versionOf(project, name, from), enabled: from > 0 })
  const after = useQuery(versionOf(project, name, to))
  const error = diff.error ?? before.error ?? after.error
  if (error) return <Trouble error={error} />
  if (!diff.data || !after.data || (from > 0 && !before.data)) return <Loading rows={6} />
  return <Comparing comparison={diff.data} before={before.data?.definition ?? null} after={after.data.definition} />
}
