/** What rules have found, the newest first. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { AutoComplete, Select } from 'antd'
import { useState } from 'react'
import type { Alert } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { useNamed, useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'
import { AlertMark, SeverityMark, useTrigger } from '../looks'
import { alerts, workflowNames, type AlertFilter } from '../queries'
import { Setup, type Step } from '../Setup'

export const ALERT_STATES: readonly Alert['state'][] = ['OPEN', 'RESOLVED', 'TOLD']

interface Props extends AlertFilter {
  project: string
  onFilter: (to: { state?: Alert['state'][] | undefined; workflow?: string | undefined }) => void
  onOpen: (id: number) => void
  onGo: (step: Step, open: string) => void
}

export function History({ project, state, workflow, onFilter, onOpen, onGo }: Props) {
  const t = useT()
  const named = useNamed()
  const wordsOf = useTrigger()
  const [typed, setTyped] = useState(workflow ?? '')
  const list = useRows<Alert>(alerts(project, { state, workflow }))
  const workflows = useQuery(workflowNames(project))
  const isFiltered = state.length > 0 || workflow !== undefined
  const filterWorkflow = (name: string): void => onFilter({ workflow: name.trim() || undefined })
  const columns: Column<Alert>[] = [
    { key: 'state', title: t('common.state'), width: '112px', render: (row) => <AlertMark state={row.state} isAlert /> },
    { key: 'severity', title: t('alerts.severity'), width: '104px', hide: 'narrow', render: (row) => <SeverityMark severity={row.severity} /> },
    {
      key: 'what',
      title: t('alerts.what'),
      width: 'minmax(170px, 2fr)',
      render: (row) => (
        <span className="two-lines">
          <span className="cut strong" title={wordsOf(row.trigger)}>{wordsOf(row.trigger)}</span>
          <span className="cut dim small alert-subject" title={row.reason ?? ''}><Subject alert={row} /> {row.instance_id === null ? null : <RunLink alert={row} />}{row.reason ? ` · ${row.reason}` : ''}</span>
        </span>
      ),
    },
    { key: 'rule', title: t('alerts.rule'), width: 'minmax(72px, 0.6fr)', hide: 'medium', render: (row) => <span className="cut mono">{row.rule}</span> },
    { key: 'at', title: t('alerts.at'), width: 'minmax(214px, 1fr)', hide: 'narrow', render: (row) => <Time at={row.at} /> },
    {
      key: 'told',
      title: `${t('alerts.told')}, ${t('alerts.acknowledged.short')}`,
      width: 'minmax(214px, 1fr)',
      hide: 'medium',
      render: (row) => (
        <span className="two-lines">
          {row.told_at ? <Time at={row.told_at} /> : <span className="dim">{t(row.silenced_by ? 'alerts.told.silenced' : 'alerts.told.notYet')}</span>}
          {row.acknowledged_by ? <span className="cut dim small">{t('alerts.acknowledged.by', { name: row.acknowledged_by })}</span> : null}
        </span>
      ),
    },
  ]
  return (
    <div className="stack">
      <div className="filters">
        <Select<Alert['state'][]> mode="multiple" allowClear className="filter-state" placeholder={t('alerts.states')} aria-label={t('common.state')} value={[...state]} onChange={(value) => onFilter({ state: value.length ? value : undefined })} options={ALERT_STATES.map((value) => ({ value, label: named('alerts.state', value) }))} />
        <span data-search className="filter-text">
          <AutoComplete
            allowClear
            className="full"
            placeholder={t('common.workflow')}
            aria-label={t('common.workflow')}
            value={typed}
            onChange={(value: string | undefined) => {
              setTyped(value ?? '')
              if (!value) filterWorkflow('')
            }}
            onSelect={(value) => filterWorkflow(value ?? '')}
            onBlur={() => typed !== (workflow ?? '') && filterWorkflow(typed)}
            onInputKeyDown={(event) => event.key === 'Enter' && filterWorkflow(typed)}
            options={(workflows.data ?? []).map((value) => ({ value }))}
            showSearch={{ filterOption: (text, option) => (option?.value ?? '').includes(text) }}
          />
        </span>
      </div>
      <ListTable list={list} label={t('alerts.history')} columns={columns} rowKey={(row) => row.id} rowHeight={48} onOpen={(row) => onOpen(row.id)} empty={isFiltered ? <Empty title={t('alerts.noMatch')} /> : <Setup project={project} onGo={onGo} />} />
    </div>
  )
}

/** What an alert is about: a workflow, perhaps a task of it, or the cluster. */
export function Subject({ alert }: { alert: Pick<Alert, 'workflow' | 'task'> }) {
  const t = useT()
  if (!alert.workflow) return <>{t('alerts.triggers.cluster')}</>
  return <>{alert.task ? `${alert.workflow} / ${alert.task}` : alert.workflow}</>
}

export function RunLink({ alert }: { alert: Pick<Alert, 'instance_id' | 'task'> }) {
  if (alert.instance_id === null) return <span className="dim">–</span>
  return <Link className="num" to="/runs/$id" params={{ id: String(alert.instance_id) }} search={alert.task ? { task: alert.task } : {}}>#{alert.instance_id}</Link>
}
