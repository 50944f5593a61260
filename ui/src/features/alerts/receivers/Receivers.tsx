/** Receivers of a project: people who are told, by which channels. */
import { Tag } from 'antd'
import type { AlertReceiver } from '@/api/types'
import { useT } from '@/shared/i18n'
import type { Column } from '@/shared/ui/DataTable'
import { DefinitionList, type Opening } from '../DefinitionList'
import { receivers } from '../queries'
import { specOf } from './receiver'
import { ReceiverForm } from './ReceiverForm'

export function Receivers(props: Opening) {
  const t = useT()
  const columns: Column<AlertReceiver>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (row) => <code className="cut">{row.name}</code> },
    { key: 'members', title: t('alerts.members'), width: 'minmax(120px, 2fr)', hide: 'narrow', render: (row) => <Members receiver={row} /> },
    { key: 'by', title: t('alerts.channels'), width: 'minmax(90px, 1fr)', hide: 'medium', render: (row) => channelsOf(row).map((one) => <Tag key={one}>{one}</Tag>) },
    { key: 'rotation', title: t('alerts.rotation'), width: 'minmax(90px, 0.8fr)', hide: 'medium', render: (row) => <Turns receiver={row} /> },
  ]
  return (
    <DefinitionList
      {...props}
      step="receivers"
      needed="project.edit"
      definitions={receivers}
      columns={columns}
      form={(name, refusal, close) => <ReceiverForm key={name} project={props.project} name={name} refusal={refusal} onClose={close} />}
    />
  )
}

function Members({ receiver }: { receiver: AlertReceiver }) {
  // Who has no name is known by an address.
  const text = specOf(receiver).members.map((one) => one.name || one.targets.flatMap((target) => target.to)[0] || one.targets[0]?.channel).join(', ')
  return <span className="cut" title={text}>{text}</span>
}

function Turns({ receiver }: { receiver: AlertReceiver }) {
  const t = useT()
  const { rotation } = specOf(receiver)
  return rotation ? <span className="cut">{t('alerts.rotation.every', { count: rotation.weeks })}</span> : <span className="dim">{t('alerts.rotation.none')}</span>
}

function channelsOf(receiver: AlertReceiver): string[] {
  return [...new Set(specOf(receiver).members.flatMap((one) => one.targets.map((target) => target.channel)))]
}
