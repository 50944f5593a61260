/** What waits for workers, in the order in which they claim it. */
import { Link } from '@tanstack/react-router'
import { Select } from 'antd'
import type { QueueEntry } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { queueEntries } from '@/entities/queries'
import { useNamed, useT } from '@/shared/i18n'
import { Lasting } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'

interface Props {
  groups: readonly { group: string; depth: number }[]
  group: string | undefined
  onGroup: (group: string | undefined) => void
}

export function Queue({ groups, group, onGroup }: Props) {
  const t = useT()
  const named = useNamed()
  const list = useRows(queueEntries(group))
  const columns: Column<QueueEntry>[] = [
    { key: 'position', title: t('cluster.position'), width: '84px', render: (one) => <span className="num">{one.position ?? '…'}</span> },
    { key: 'group', title: t('cluster.workerGroup'), width: 'minmax(90px, 140px)', hide: 'narrow', render: (one) => one.group },
    { key: 'task', title: t('cluster.task'), width: 'minmax(140px, 2fr)', render: (one) => (one.workflow_instance_id === null ? <span className="dim">{t('cluster.hidden')}</span> : <Link className="cut" to="/runs/$id" params={{ id: String(one.workflow_instance_id) }} search={{ task: one.task ?? undefined }}><span className="dim">{one.project}/{one.workflow} #{one.workflow_instance_id} </span>{one.task}</Link>) },
    { key: 'priority', title: t('cluster.priority'), width: 'minmax(120px, 180px)', hide: 'narrow', render: (one) => [one.priority, one.task_priority].map((level) => named('priority', level)).join(' · ') },
    { key: 'waits', title: t('cluster.waits'), width: '110px', render: (one) => <Lasting from={one.queued_at} to={null} /> },
  ]
  return (
    <div className="stack fill">
      <div className="row">
        <Select
          className="filter-short"
          aria-label={t('cluster.workerGroup')}
          value={group ?? ''}
          onChange={(one) => onGroup(one || undefined)}
          options={[{ value: '', label: t('cluster.allGroups') }, ...groups.map((one) => ({ value: one.group, label: `${one.group} (${one.depth})` }))]}
        />
      </div>
      <ListTable list={list} label={t('cluster.queue')} columns={columns} rowKey={(one) => `${one.group} ${one.position ?? ''} ${one.task_instance_id ?? ''}`} empty={<Empty title={t('cluster.nothingWaits')} />} />
    </div>
  )
}
