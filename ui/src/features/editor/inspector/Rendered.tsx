/** What a task would get for a date: its params with everything filled in, as the API renders them. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Input } from 'antd'
import { useState } from 'react'
import { stringify } from 'yaml'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { instantOf } from '@/shared/time/format'
import { useZone } from '@/shared/time/Time'
import { Code, Empty, Loading } from '@/shared/ui/parts'
import { renderedOf } from '../queries'

export function Rendered({ project, workflow, version, task, zone: own }: { project: string; workflow: string; version: number; task: string; zone: string }) {
  const t = useT()
  const zone = useZone(own)
  const [time, setTime] = useState(() => `${new Date().toISOString().slice(0, 10)}T00:00`)
  const instant = time ? instantOf(time, zone) : null
  const found = useQuery({ ...renderedOf(project, workflow, version, task, instant ?? ''), enabled: version > 0 && instant !== null })
  if (!version) return <Empty title={t('rendered.unpublished')} />
  return (
    <>
      <label className="form-field"><span className="form-label">{t('time.logical')} ({zone})</span><Input size="small" type="datetime-local" value={time} onChange={(event) => setTime(event.target.value)} /></label>
      <p className="dim small">{t('rendered.ofVersion', { version })}</p>
      {found.error ? <Trouble error={found.error} /> : null}
      {found.isPending && time ? <Loading rows={4} /> : null}
      {found.data === null ? <p className="dim">{t('rendered.notThere', { version })}</p> : null}
      {found.data?.problem ? <Alert type="warning" showIcon title={found.data.problem} /> : null}
      {found.data ? (
        <>
          {typeof found.data.params.script === 'string' ? <><h3>{t('rendered.script')}</h3><Code text={found.data.params.script} /></> : null}
          <h3>{t('rendered.params')}</h3>
          <Code text={stringify(Object.fromEntries(Object.entries(found.data.params).filter(([name, value]) => name !== 'script' && value !== null)))} />
          <h3>{t('rendered.parameters')}</h3>
          <Code text={stringify(found.data.parameters)} />
        </>
      ) : null}
    </>
  )
}
