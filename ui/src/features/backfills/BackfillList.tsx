/** Backfills with their progress: of one workflow, or all that one may see. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Backfill } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { StateMark } from '@/entities/marks'
import { backfills } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty, PageHead } from '@/shared/ui/parts'
import { Counts } from './Counts'

export function BackfillsPage({ project, onOpen }: { project: string | undefined; onOpen: (id: number) => void }) {
  const t = useT()
  return (
    <>
      <PageHead title={t('workflow.backfills')} crumbs={<Link to="/runs" search={project ? { project } : {}}>{t('nav.runs')}</Link>} />
      <BackfillList project={project} onOpen={onOpen} />
    </>
  )
}

export function BackfillList({ project, workflow, onOpen, action }: { project: string | undefined; workflow?: string; onOpen: (id: number) => void; action?: ReactNode }) {
  const t = useT()
  const list = useRows(backfills({ project, workflow }))
  const columns: Column<Backfill>[] = [
    { key: 'id', title: '#', width: '64px', render: (one) => <Link className="num" to="/backfills/$id" params={{ id: String(one.id) }}>{one.id}</Link> },
    { key: 'state', title: t('common.state'), width: '128px', render: (one) => <StateMark state={one.state} /> },
    ...(workflow ? [] : [{ key: 'workflow', title: t('common.workflow'), width: 'minmax(140px, 1.2fr)', hide: 'narrow' as const, render: (one: Backfill) => <span className="path"><span className="dim">{one.project}/</span>{one.workflow}</span> }]),
    { key: 'dates', title: t('backfill.dates'), width: 'minmax(120px, 1.6fr)', render: (one) => <Counts backfill={one} isBare /> },
    { key: 'by', title: t('common.principal'), width: 'minmax(90px, 0.8fr)', hide: 'medium', render: (one) => <span className="cut dim">{one.requested_by}</span> },
    { key: 'created', title: t('common.created'), width: 'minmax(190px, 210px)', hide: 'narrow', render: (one) => <Time at={one.created_at} /> },
    { key: 'reason', title: t('common.reason'), width: 'minmax(100px, 1fr)', hide: 'medium', render: (one) => <span className="cut dim" title={one.reason ?? ''}>{one.reason ?? ''}</span> },
  ]
  return (
    <ListTable
      list={list}
      label={t('workflow.backfills')}
      columns={columns}
      rowKey={(one) => one.id}
      onOpen={(one) => onOpen(one.id)}
      empty={<Empty title={t('backfill.empty')} action={action}>{t('backfill.empty.text')}</Empty>}
    />
  )
}
