/** What a task of the draft would get for a date: its params with everything filled in, as the API renders them. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Input } from 'antd'
import { useEffect, useState } from 'react'
import { stringify } from 'yaml'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { instantOf } from '@/shared/time/format'
import { useZone } from '@/shared/time/Time'
import { Code, Empty, Loading } from '@/shared/ui/parts'
import { renderedOf } from '../queries'

const PAUSE_MS = 500 // in typing, before it is rendered anew

interface Props {
  project: string
  workflow: string
  /** The draft; null: who looks may not edit it, and sees the newest version. */
  text: string | null
  version: number
  task: string
  zone: string
}

export function Rendered({ project, workflow, text, version, task, zone: own }: Props) {
  const t = useT()
  const zone = useZone(own)
  const [time, setTime] = useState(() => `${new Date().toISOString().slice(0, 10)}T00:00`)
  const instant = time ? instantOf(time, zone) : null
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  const found = useQuery({ ...renderedOf(project, workflow, settled, task, instant ?? ''), enabled: (settled !== null || version > 0) && instant !== null })
  if (text === null && !version) return <Empty title={t('rendered.unpublished')} />
  return (
    <>
      <label className="form-field"><span className="form-label">{t('time.logical')} ({zone})</span><Input size="small" type="datetime-local" value={time} onChange={(event) => setTime(event.target.value)} /></label>
      <p className="dim small">{text === null ? t('rendered.ofVersion', { version }) : t('rendered.ofDraft')}</p>
      {found.error ? <Trouble error={found.error} /> : null}
      {found.isPending && time ? <Loading rows={4} /> : null}
      {found.data === null && !found.error ? <p className="dim">{t('rendered.notThere')}</p> : null}
      {found.data?.problem ? <Alert type="warning" showIcon title={found.data.problem} /> : null}
      {found.data && !found.error ? (
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
