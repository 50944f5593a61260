/** Channels of a project: the ways by which messages leave. */
import { useQuery } from '@tanstack/react-query'
import { Tag } from 'antd'
import { useState } from 'react'
import type { AlertChannel } from '@/api/types'
import { Act, useRefusal } from '@/entities/marks'
import { useNamed, useT } from '@/shared/i18n'
import type { Column } from '@/shared/ui/DataTable'
import { DefinitionList, type Opening } from '../DefinitionList'
import { channelKinds, channels } from '../queries'
import { placeOf, specOf } from './channel'
import { ChannelForm } from './ChannelForm'
import { TestChannel } from './TestChannel'

/** The channel that is tried, with its kind. */
interface Tested {
  name: string
  kind: string
}

export function Channels(props: Opening) {
  const t = useT()
  const named = useNamed()
  const { project } = props
  const kinds = useQuery(channelKinds)
  const refusal = useRefusal('connection.edit', project)
  const [tested, setTested] = useState<Tested | null>(null)
  const test = (row: AlertChannel): void => setTested({ name: row.name, kind: specOf(row).kind })
  const columns: Column<AlertChannel>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(110px, 1.3fr)', render: (row) => <span className="row"><code className="cut">{row.name}</code>{specOf(row).enabled ? null : <Tag>{t('alerts.disabled')}</Tag>}</span> },
    { key: 'kind', title: t('alerts.channel.kind'), width: 'minmax(110px, 0.8fr)', hide: 'narrow', render: (row) => named('alerts.channel.kind', specOf(row).kind) },
    { key: 'where', title: t('sources.where'), width: 'minmax(100px, 1.6fr)', hide: 'narrow', render: (row) => <span className="cut mono dim" title={placeOf(row)}>{placeOf(row)}</span> },
    { key: 'rate', title: t('alerts.channel.rate'), width: '120px', hide: 'medium', render: (row) => <span className="num">{specOf(row).per_minute}</span> },
  ]
  return (
    <>
      <DefinitionList
        {...props}
        step="channels"
        needed="connection.edit"
        definitions={channels}
        columns={columns}
        extra={(row) => <Act size="small" type="text" refusal={refusal} onClick={() => test(row)}>{t('alerts.test')}<span className="hidden"> {row.name}</span></Act>}
        form={(name, own, close) =>
          kinds.data ? (
            <ChannelForm key={name} project={project} name={name} kinds={kinds.data.items} refusal={own} onClose={close} />
          ) : null
        }
      />
      {tested ? <TestChannel key={tested.name} project={project} name={tested.name} needsAddresses={kinds.data?.items.find((one) => one.kind === tested.kind)?.needs_addresses ?? false} refusal={refusal} onClose={() => setTested(null)} /> : null}
    </>
  )
}
