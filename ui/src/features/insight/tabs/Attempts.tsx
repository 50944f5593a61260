/** The attempts that failed for one cause, each with the way to its log. */
import { Link } from '@tanstack/react-router'
import { Drawer } from 'antd'
import type { Task } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { StateMark } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { useWidth, type Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'
import { attemptsOf, type Scope } from '../queries'

const FINGERPRINT = /^[0-9a-f]{16}$/ // as the list of attempts takes it

interface Props {
  fingerprint: string
  sample: string | null
  scope: Scope
  onClose: () => void
}

export function Attempts({ fingerprint, sample, scope, onClose }: Props) {
  const t = useT()
  const width = useWidth()
  return (
    <Drawer open onClose={onClose} size={Math.min(width, 760)} title={t('insight.attemptsOf')} destroyOnHidden>
      <div className="stack insight-attempts">
        {sample ? <p className="cause-sample mono">{sample}</p> : null}
        {FINGERPRINT.test(fingerprint) ? <List fingerprint={fingerprint} scope={scope} /> : <Empty title={t('insight.noErrorLine')}>{t('insight.noErrorLine.text')}</Empty>}
      </div>
    </Drawer>
  )
}

function List({ fingerprint, scope }: { fingerprint: string; scope: Scope }) {
  const t = useT()
  const list = useRows(attemptsOf(fingerprint, scope))
  const columns: Column<Task>[] = [
    { key: 'run', title: t('insight.run'), width: '76px', render: (one) => <Link className="num" to="/runs/$id" params={{ id: String(one.workflow_instance_id) }} search={{ task: one.task, attempt: one.attempt }}>#{one.workflow_instance_id}</Link> },
    { key: 'task', title: t('insight.task'), width: 'minmax(140px, 1.4fr)', render: (one) => <span className="path"><span className="dim">{one.project}/{one.workflow} · </span><span className="mono">{one.task}</span></span> },
    { key: 'state', title: t('common.state'), width: '110px', hide: 'narrow', render: (one) => <StateMark state={one.state} /> },
    { key: 'at', title: t('insight.ended'), width: 'minmax(170px, 1fr)', hide: 'narrow', render: (one) => <Time at={one.finished_at} /> },
  ]
  return <ListTable list={list} label={t('insight.attemptsOf')} columns={columns} rowKey={(one) => one.id} rowHeight={36} empty={<Empty title={t('insight.noAttempts')}>{t('insight.noAttempts.text')}</Empty>} />
}
