/** Is anyone overloaded or gone? Masters, partitions, workers, what waits for them, takeovers. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Progress, Tabs, Tag } from 'antd'
import { useMemo } from 'react'
import type { Cluster } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { cluster as clusterOf } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/cluster'
import { Time } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { Empty, Facts, Loading, PageHead, Panel } from '@/shared/ui/parts'
import { Quarantine } from './Quarantine'
import { Queue } from './Queue'
import { Takeovers } from './Takeovers'

const COLOURS = 8

export type ClusterTab = 'overview' | 'queue' | 'takeovers' | 'quarantine'

interface Props {
  tab?: ClusterTab | undefined
  /** The worker group whose queue is shown. */
  group?: string | undefined
  onView: (to: { tab?: ClusterTab; group?: string | undefined }) => void
}

export function ClusterPage({ tab = 'overview', group, onView }: Props) {
  const t = useT()
  const { data, error, refetch } = useQuery(clusterOf)
  return (
    <div className="page-fill">
      <PageHead title={t('cluster.title')} mark={data ? <Tag>{t('cluster.group', { state: data.group.state, generation: data.group.generation })}</Tag> : null} />
      {error ? <Trouble error={error} retry={() => void refetch()} /> : null}
      {!data && !error ? <Loading rows={10} /> : null}
      {data ? (
        <Tabs
          className="fill-tabs"
          activeKey={tab}
          onChange={(key) => onView({ tab: key as ClusterTab })}
          destroyOnHidden
          items={[
            { key: 'overview', label: t('cluster.overview'), children: <Parts cluster={data} onGroup={(one) => onView({ tab: 'queue', group: one })} /> },
            { key: 'queue', label: t('cluster.queue'), children: <Queue groups={data.queues} group={group} onGroup={(one) => onView({ group: one })} /> },
            { key: 'takeovers', label: t('cluster.takeovers'), children: <Takeovers /> },
            { key: 'quarantine', label: t('cluster.setAside'), children: <Quarantine /> },
          ]}
        />
      ) : null}
    </div>
  )
}

function Parts({ cluster, onGroup }: { cluster: Cluster; onGroup: (group: string) => void }) {
  const t = useT()
  const { backlog } = cluster
  const colour = useMemo(() => new Map(cluster.masters.map((master, index) => [master.id, index % COLOURS])), [cluster.masters])
  return (
    <div className="stack">
      <div className="counters">
        {backlog
          ? (
              [
                ['openRuns', backlog.open_instances],
                ['pending', backlog.pending_commands],
                ['queued', backlog.queued],
                ['claimed', backlog.claimed],
                ['running', backlog.running],
              ] as const
            ).map(([key, value]) => (
              <div key={key} className="counter">
                <span className="counter-value num">{value}</span>
                <span className="counter-label">{{ openRuns: t('cluster.openRuns'), pending: t('cluster.pending'), queued: t('cluster.queued'), claimed: t('cluster.claimed'), running: t('cluster.running') }[key]}</span>
              </div>
            ))
          : null}
      </div>
      {cluster.set_aside.length ? <Alert type="warning" title={t('cluster.setAside')} description={cluster.set_aside.map((one) => `${one.kind} ${one.item}: ${one.reason}`).join('\n')} /> : null}
      <div className="columns wide-left">
        <div className="stack">
          <Panel title={t('cluster.workers')} flush>
            {cluster.workers.length ? <Workers workers={cluster.workers} /> : <Empty title={t('cluster.noWorkers')} />}
          </Panel>
          <Panel title={t('cluster.queues')}>
            <Facts items={cluster.queues.map((queue) => [queue.group, <button key={queue.group} type="button" className="link num" onClick={() => onGroup(queue.group)}>{queue.depth}</button>])} />
          </Panel>
          <Panel title={t('cluster.stores')}>
            <Facts items={[[t('cluster.zookeeper'), <Answers key="zookeeper" what={cluster.zookeeper.state} latency={cluster.zookeeper.latency_s} />], [t('cluster.database'), <Answers key="database" what={cluster.database.kind} latency={cluster.database.latency_s} />]]} />
          </Panel>
        </div>
        <div className="stack">
          <Panel title={t('cluster.masters')} flush>
            <ul className="side-list">
              {cluster.masters.map((master) => (
                <li key={master.id}>
                  <div className="row">
                    <span className={`swatch owner-${colour.get(master.id) ?? 0}`} />
                    <span className="mono cut">{master.id}</span>
                    <span className="grow" />
                    <span className="num">{master.partitions.length}</span>
                  </div>
                  <span className="dim small">{master.address}{master.leads ? ` · ${t('cluster.leads')}` : ''}</span>
                </li>
              ))}
            </ul>
          </Panel>
          <Panel title={t('cluster.partitions')}>
            <div className="partitions" role="list">
              {cluster.partitions.map((one) => (
                <span
                  key={one.index}
                  role="listitem"
                  className={`partition ${one.owner ? `owner-${colour.get(one.owner) ?? 0}` : 'nobody'} ${one.open_instances ? 'busy' : ''}`}
                  title={`${one.index}: ${t('cluster.owner', { owner: one.owner ?? t('cluster.nobody'), epoch: one.epoch, open: one.open_instances ?? 0 })}`}
                />
              ))}
            </div>
          </Panel>
        </div>
      </div>
    </div>
  )
}

/** How quickly a store answers; it may not answer at all. */
function Answers({ what, latency }: { what: string; latency: number | null | undefined }) {
  const t = useT()
  return <>{what} · {latency === null || latency === undefined ? <Tag color="error">{t('cluster.silent')}</Tag> : <span className="num">{t('cluster.answers', { ms: (latency * 1000).toFixed(latency < 0.01 ? 1 : 0) })}</span>}</>
}

type Worker = Cluster['workers'][number]

function Workers({ workers }: { workers: readonly Worker[] }) {
  const t = useT()
  const columns: Column<Worker>[] = [
    { key: 'id', title: t('common.worker'), width: 'minmax(140px, 1.4fr)', render: (one) => <span className="two-lines"><span className="mono cut">{one.id}</span><span className="dim small cut">{one.address}</span></span> },
    { key: 'group', title: t('cluster.workerGroup'), width: '120px', hide: 'narrow', render: (one) => one.group },
    { key: 'load', title: t('cluster.running'), width: 'minmax(120px, 1fr)', render: (one) => <span className="load"><Progress percent={one.slots ? (100 * one.running) / one.slots : 0} showInfo={false} size="small" aria-label={t('cluster.slots', { running: one.running, slots: one.slots })} /><span className="num small">{t('cluster.slots', { running: one.running, slots: one.slots })}</span></span> },
    { key: 'since', title: t('cluster.since'), width: 'minmax(100px, 190px)', hide: 'medium', render: (one) => (one.paused ? <Tag color="warning">{t('cluster.paused', { reason: one.paused })}</Tag> : <Time at={one.started_at} />) },
  ]
  return <DataTable label={t('cluster.workers')} rows={workers} columns={columns} rowKey={(one) => one.id} rowHeight={52} />
}
