/** What a part of Shoal cannot work with, and what can be done about it. */
import { Tag } from 'antd'
import type { Quarantined } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { Act, useRefusal } from '@/entities/marks'
import { discardQuarantined, quarantined, retryQuarantined } from '@/entities/queries'
import { useAsk, useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'

export function Quarantine() {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal('cluster.operate')
  const list = useRows(quarantined)
  const name = (one: Quarantined): string => `${one.kind} ${one.item}`
  const retry = (one: Quarantined): void => void act(() => retryQuarantined(one), t('cluster.quarantine.retried', { item: name(one) }), [['cluster']])
  const discard = (one: Quarantined): void =>
    ask({ title: t('cluster.quarantine.discard.ask', { item: name(one) }), text: t('cluster.quarantine.discard.text'), ok: t('cluster.quarantine.discard'), act: () => act(() => discardQuarantined(one), t('cluster.quarantine.discarded', { item: name(one) }), [['cluster']]) })
  const columns: Column<Quarantined>[] = [
    {
      key: 'item',
      title: t('cluster.quarantine.item'),
      width: 'minmax(150px, 1fr)',
      render: (one) => <span className="two-lines"><span className="cut strong">{name(one)}</span><span className="cut dim small">{[one.consumer, one.project, one.workflow].filter(Boolean).join(' · ')}</span></span>,
    },
    { key: 'reason', title: t('common.reason'), width: 'minmax(160px, 2.4fr)', render: (one) => <span className="cut" title={one.reason}>{one.reason}</span> },
    {
      key: 'state',
      title: t('common.state'),
      width: '150px',
      hide: 'narrow',
      render: (one) => (one.retry_at ? <Tag color="processing">{t('cluster.quarantine.waits')}</Tag> : <Tag color={one.is_skipped ? 'warning' : 'error'}>{one.is_skipped ? t('cluster.quarantine.skipped') : t('cluster.quarantine.held')}</Tag>),
    },
    { key: 'last', title: t('cluster.quarantine.last'), width: 'minmax(150px, 214px)', hide: 'medium', render: (one) => <Time at={one.last_at} /> },
    {
      key: 'ways',
      title: <span className="hidden">{t('cluster.quarantine.retry')}</span>,
      width: '170px',
      render: (one) => (
        <span className="row ways">
          <Act size="small" type="text" refusal={refusal} onClick={() => retry(one)}>{t('cluster.quarantine.retry')}<span className="hidden"> {name(one)}</span></Act>
          {one.consumer === 'masters' ? null : <Act size="small" type="text" refusal={refusal} onClick={() => discard(one)}>{t('cluster.quarantine.discard')}<span className="hidden"> {name(one)}</span></Act>}
        </span>
      ),
    },
  ]
  return (
    <div className="stack fill">
      <p className="lead">{t('cluster.quarantine.text')}</p>
      <ListTable list={list} label={t('cluster.setAside')} columns={columns} rowKey={(one) => `${one.consumer} ${one.kind} ${one.item}`} empty={<Empty title={t('cluster.quarantine.none')} />} />
    </div>
  )
}
