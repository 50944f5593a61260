/** Runs as rows. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Instance } from '@/api/types'
import { useSaid, useT } from '@/shared/i18n'
import { Lasting, Time } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { StateMark } from './marks'
import { hasEnded } from './states'

export interface Choice {
  has: (id: number) => boolean
  toggle: (id: number) => void
  isAll: boolean
  toggleAll: () => void
}

interface Props {
  rows: readonly Instance[]
  onOpen: (id: number) => void
  footer?: ReactNode
  bare?: boolean
  /** Rows can be chosen, to act on many. */
  choice?: Choice
  onEnd?: () => void
}

export function RunTable({ rows, onOpen, footer, bare = false, choice, onEnd }: Props) {
  const t = useT()
  const said = useSaid()
  const columns: Column<Instance>[] = [
    ...(choice
      ? [{
          key: 'choice',
          title: <input type="checkbox" className="pick" checked={choice.isAll} onChange={choice.toggleAll} aria-label={t('bulk.chooseAll')} />,
          width: '20px',
          render: (run: Instance) => <input type="checkbox" className="pick" checked={choice.has(run.id)} onChange={() => choice.toggle(run.id)} aria-label={t('bulk.choose', { id: run.id })} />,
        }]
      : []),
    { key: 'id', title: '#', width: '56px', render: (run) => <Link className="num" to="/runs/$id" params={{ id: String(run.id) }}>{run.id}</Link> },
    { key: 'state', title: t('common.state'), width: '118px', render: (run) => <StateMark state={run.state} /> },
    ...(bare
      ? []
      : [{ key: 'workflow', title: t('common.workflow'), width: 'minmax(110px, 1.3fr)', render: (run: Instance) => <span className="path"><span className="dim">{run.project}/</span>{run.workflow}</span> }]),
    { key: 'logical', title: t('time.logical'), width: 'minmax(206px, 1fr)', hide: 'medium', render: (run) => <Time at={run.logical_time} zone={run.timezone} /> },
    { key: 'started', title: t('common.started'), width: 'minmax(190px, 1fr)', hide: 'narrow', render: (run) => <Time at={run.started_at} zone={run.timezone} /> },
    { key: 'duration', title: t('common.duration'), width: '84px', render: (run) => <Lasting from={run.started_at} to={hasEnded(run.state) ? run.finished_at : null} /> },
    { key: 'reason', title: t('common.reason'), width: 'minmax(90px, 1.6fr)', hide: 'medium', render: (run) => <span className="cut dim" title={run.reason ?? ''}>{said(run.reason_said, run.reason)}</span> },
  ]
  return <DataTable label={t('nav.runs')} rows={rows} columns={columns} rowKey={(run) => run.id} onOpen={(run) => onOpen(run.id)} isChosen={(run) => choice?.has(run.id) ?? false} footer={footer} onEnd={onEnd} />
}
