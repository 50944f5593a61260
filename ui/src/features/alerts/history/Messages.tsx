/** All messages of a project, the newest first: what has left, what waits, what failed. */
import { Select } from 'antd'
import { useState } from 'react'
import type { AlertChannel, AlertDelivery } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { useNamed, useT } from '@/shared/i18n'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'
import { AlertMark } from '../looks'
import { channels, deliveries, type DeliveryFilter } from '../queries'
import { DeliveryTime } from './DeliveryList'
import { MessageDrawer } from './MessageDrawer'

export const DELIVERY_STATES: readonly AlertDelivery['state'][] = ['PENDING', 'SENDING', 'SENT', 'FAILED', 'WITHDRAWN', 'SILENCED']

interface Props extends DeliveryFilter {
  project: string
  onAlert: (id: number) => void
  onFilter: (to: { sent?: AlertDelivery['state'][] | undefined; channel?: string | undefined }) => void
}

export function Messages({ project, state, channel, onAlert, onFilter }: Props) {
  const t = useT()
  const named = useNamed()
  const [open, setOpen] = useState<AlertDelivery | null>(null)
  const list = useRows<AlertDelivery>(deliveries(project, { state, channel }))
  const known = useRows<AlertChannel>(channels.list(project))
  const isFiltered = state.length > 0 || channel !== undefined
  const columns: Column<AlertDelivery>[] = [
    { key: 'state', title: t('common.state'), width: '124px', render: (row) => <AlertMark state={row.state} /> },
    { key: 'at', title: t('alerts.message.at'), width: 'minmax(236px, 1fr)', hide: 'narrow', render: (row) => <DeliveryTime delivery={row} /> },
    { key: 'kind', title: t('alerts.kind'), width: 'minmax(90px, 0.7fr)', hide: 'narrow', render: (row) => named('alerts.kind', row.kind) },
    { key: 'rule', title: t('alerts.rule'), width: 'minmax(80px, 0.8fr)', hide: 'medium', render: (row) => <span className="cut mono">{row.rule || '–'}</span> },
    { key: 'to', title: t('alerts.to'), width: 'minmax(110px, 1.2fr)', render: (row) => <span className="cut" title={row.recipients.join(', ')}>{row.receiver || row.channel}<span className="dim"> · {row.receiver ? row.channel : row.recipients.join(', ')}</span></span> },
    { key: 'tries', title: t('alerts.triesOf'), width: '56px', hide: 'medium', render: (row) => <span className="num">{row.tries}</span> },
    { key: 'answer', title: t('alerts.answer'), width: 'minmax(90px, 1.4fr)', hide: 'narrow', render: (row) => <span className={row.state === 'FAILED' ? 'cut mono bad-text' : 'cut mono dim'} title={row.answer ?? ''}>{row.answer}</span> },
  ]
  const names = [...new Set([...known.rows.map((one) => one.name), ...(channel ? [channel] : [])])]
  return (
    <div className="stack">
      <div className="filters">
        <Select<AlertDelivery['state'][]> mode="multiple" allowClear className="filter-state" placeholder={t('alerts.states')} aria-label={t('common.state')} value={[...state]} onChange={(value) => onFilter({ sent: value.length ? value : undefined })} options={DELIVERY_STATES.map((value) => ({ value, label: named('alerts.message', value) }))} />
        <Select<string | null> allowClear showSearch className="filter-short" placeholder={t('alerts.channels.all')} aria-label={t('alerts.channel')} value={channel ?? null} onChange={(value: string | null | undefined) => onFilter({ channel: value ?? undefined })} options={names.map((value) => ({ value, label: value }))} />
      </div>
      <ListTable list={list} label={t('alerts.messages')} columns={columns} rowKey={(row) => row.id} onOpen={setOpen} empty={<Empty title={t(isFiltered ? 'alerts.noMatch' : 'alerts.messages.none')}>{isFiltered ? null : t('alerts.messages.none.text')}</Empty>} />
      {open ? <MessageDrawer project={project} delivery={list.rows.find((row) => row.id === open.id) ?? open} onAlert={onAlert} onClose={() => setOpen(null)} /> : null}
    </div>
  )
}
