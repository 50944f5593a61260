/** One alert: what it is about, who was told of it, and what can be done about that. */
import { useQuery } from '@tanstack/react-query'
import { Drawer } from 'antd'
import type { ReactNode } from 'react'
import type { AlertDetail } from '@/api/types'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { useWidth } from '@/shared/ui/DataTable'
import { Facts, Loading } from '@/shared/ui/parts'
import { AlertMark, SeverityMark, useTrigger } from '../looks'
import { acknowledge, alert as alertOf, keyOf } from '../queries'
import type { Covered } from '../silences/SilenceForm'
import { DeliveryList } from './DeliveryList'
import { RunLink, Subject } from './History'

interface Props {
  project: string
  id: number
  onSilence: (covered: Covered) => void
  onClose: () => void
}

export function AlertDrawer({ project, id, onSilence, onClose }: Props) {
  const t = useT()
  const width = useWidth()
  const wordsOf = useTrigger()
  const { data, error, refetch } = useQuery(alertOf(project, id))
  return (
    <Drawer open onClose={onClose} size={Math.min(width, 760)} title={data ? <>{wordsOf(data.trigger)} <span className="dim num">#{id}</span></> : t('alerts.one', { id })} destroyOnHidden>
      {error && !data ? <Trouble error={error} retry={() => void refetch()} /> : null}
      {!data && !error ? <Loading rows={8} /> : null}
      {data ? <Detail project={project} alert={data} onSilence={onSilence} /> : null}
    </Drawer>
  )
}

function Detail({ project, alert, onSilence }: { project: string; alert: AlertDetail; onSilence: (covered: Covered) => void }) {
  const t = useT()
  const act = useDo()
  const refusal = useRefusal('run.operate', project)
  // Nobody is reminded of what is over, so there is nothing to take in hand.
  const isDone = alert.acknowledged_at !== null || alert.state !== 'OPEN'
  return (
    <div className="stack" data-alert={alert.state}>
      <div className="alert-head">
        <AlertMark state={alert.state} isAlert />
        <SeverityMark severity={alert.severity} />
        <span className="grow" />
        {isDone ? null : <Act type="primary" refusal={refusal} onClick={() => void act(() => acknowledge(project, alert.id), t('alerts.acknowledge.done'), [keyOf(project)])}>{t('alerts.acknowledge')}</Act>}
        <Act refusal={refusal} onClick={() => onSilence({ workflow: alert.workflow, rule: alert.rule, ...(alert.task ? { task: alert.task } : {}) })}>{t('alerts.silence')}</Act>
      </div>
      {alert.reason ? <p className={alert.state === 'OPEN' ? 'reason bad' : 'reason'}>{alert.reason}</p> : null}
      <Facts
        items={[
          [t('alerts.about'), <Subject key="s" alert={alert} />],
          [t('alerts.run'), <RunLink key="r" alert={alert} />],
          ...(alert.logical_time ? [[t('time.logical'), <Time key="l" at={alert.logical_time} />] as [string, ReactNode]] : []),
          [t('alerts.rule'), <code key="u">{alert.rule}</code>],
          [t('alerts.at'), <Time key="a" at={alert.at} />],
          [t('alerts.told'), alert.told_at ? <Time key="t" at={alert.told_at} /> : t(alert.silenced_by ? 'alerts.told.silenced' : 'alerts.told.notYet')],
          [t('alerts.acknowledged'), alert.acknowledged_by ? <span key="k">{alert.acknowledged_by}, <Time at={alert.acknowledged_at} /></span> : '–'],
          ...(alert.state === 'OPEN' ? [[t('alerts.next'), alert.next_at && !alert.acknowledged_at ? <Time key="n" at={alert.next_at} /> : t('alerts.next.never')] as [string, ReactNode]] : []),
          ...(alert.resolved_at ? [[t('alerts.resolved'), <Time key="e" at={alert.resolved_at} />] as [string, ReactNode]] : []),
        ]}
      />
      <h2 className="form-head">{t('alerts.deliveries')}</h2>
      <DeliveryList deliveries={alert.deliveries} />
    </div>
  )
}
