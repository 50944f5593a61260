/** Which masters have taken which partitions from which. */
import type { Takeover } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { takeovers } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'

export function Takeovers() {
  const t = useT()
  const list = useRows(takeovers)
  const columns: Column<Takeover>[] = [
    { key: 'at', title: t('run.event.at'), width: 'minmax(150px, 230px)', render: (one) => <Time at={one.at} /> },
    { key: 'partition', title: t('cluster.partition'), width: '90px', render: (one) => <span className="num">{one.partition}</span> },
    { key: 'owner', title: t('cluster.ownerNow'), width: 'minmax(120px, 1fr)', render: (one) => <span className="mono cut">{one.owner ?? t('cluster.nobody')}</span> },
    { key: 'before', title: t('cluster.ownerBefore'), width: 'minmax(120px, 1fr)', hide: 'narrow', render: (one) => <span className="mono cut dim">{one.previous_owner ?? t('cluster.nobody')}</span> },
    { key: 'epoch', title: t('cluster.epoch'), width: '140px', hide: 'medium', render: (one) => <span className="num">{one.epoch}</span> },
  ]
  return <div className="stack fill"><ListTable list={list} label={t('cluster.takeovers')} columns={columns} rowKey={(one) => one.id} empty={<Empty title={t('cluster.noTakeovers')} />} /></div>
}
