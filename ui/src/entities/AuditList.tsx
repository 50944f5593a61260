/** Who has done what: entries of the audit with their filters, of a project or of all. */
import { Drawer, Input, Select } from 'antd'
import { useMemo, useState } from 'react'
import { api, take } from '@/api/client'
import type { AuditEntry } from '@/api/types'
import { useNamed, useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { useWidth, type Column } from '@/shared/ui/DataTable'
import { Code, Empty, Facts } from '@/shared/ui/parts'
import { ListTable, pagesOf, useRows } from './lists'

export interface AuditSearch {
  principal?: string | undefined
  action?: string | undefined
  outcome?: 'done' | 'refused' | undefined
}

const LIMIT = 100

export function AuditList({ project, search, onSearch }: { project?: string; search: AuditSearch; onSearch: (to: AuditSearch) => void }) {
  const t = useT()
  const named = useNamed()
  const width = useWidth()
  const [open, setOpen] = useState<AuditEntry | null>(null)
  const { principal, action, outcome } = search
  const query = useMemo(() => ({ limit: LIMIT, ...(principal ? { principal } : {}), ...(action ? { action } : {}), ...(outcome ? { outcome } : {}) }), [principal, action, outcome])
  const list = useRows<AuditEntry>(
    pagesOf(['audit', project, query], (cursor) =>
      project === undefined
        ? take(api.GET('/api/v1/audit', { params: { query: { ...query, cursor } } }))
        : take(api.GET('/api/v1/projects/{project}/audit', { params: { path: { project }, query: { ...query, cursor } } })),
    ),
  )
  const columns: Column<AuditEntry>[] = [
    { key: 'at', title: t('audit.at'), width: 'minmax(150px, 210px)', render: (row) => <Time at={row.at} /> },
    { key: 'who', title: t('common.principal'), width: 'minmax(80px, 1fr)', render: (row) => <span className="cut">{row.principal || '–'}</span> },
    { key: 'action', title: t('audit.action'), width: 'minmax(120px, 1.2fr)', render: (row) => <code className={row.outcome === 'refused' ? 'bad-text' : undefined}>{row.action}</code> },
    { key: 'project', title: t('common.project'), width: 'minmax(80px, 0.8fr)', hide: 'medium', render: (row) => <span className="cut dim">{row.project}</span> },
    { key: 'object', title: t('audit.object'), width: 'minmax(90px, 1.2fr)', hide: 'narrow', render: (row) => <span className="cut mono">{row.object}</span> },
    { key: 'outcome', title: t('audit.outcome'), width: '90px', hide: 'narrow', render: (row) => (row.outcome === 'refused' ? <strong className="bad-text">{t('audit.outcome.refused')}</strong> : <span className="dim">{named('audit.outcome', row.outcome)}</span>) },
    { key: 'address', title: t('audit.address'), width: '120px', hide: 'medium', render: (row) => <span className="dim mono">{row.address}</span> },
  ]
  const find = (key: 'principal' | 'action', hint: string, isFirst = false) => (
    <Input key={`${key}:${search[key] ?? ''}`} allowClear className="filter-text" {...(isFirst ? { 'data-search': true } : {})} placeholder={hint} aria-label={hint} defaultValue={search[key]} onPressEnter={(event) => onSearch({ ...search, [key]: event.currentTarget.value.trim() || undefined })} onClear={() => onSearch({ ...search, [key]: undefined })} />
  )
  return (
    <div className="stack">
      <div className="filters">
        {find('principal', t('audit.principal.hint'), true)}
        {find('action', t('audit.action.hint'))}
        <Select<'all' | 'done' | 'refused'> className="filter-short" aria-label={t('audit.outcome')} value={outcome ?? 'all'} onChange={(value) => onSearch({ ...search, outcome: value === 'all' ? undefined : value })} options={(['all', 'done', 'refused'] as const).map((value) => ({ value, label: t(`audit.outcome.${value}`) }))} />
      </div>
      <ListTable list={list} label={t('audit.title')} columns={columns} rowKey={(row) => row.id} rowHeight={34} onOpen={setOpen} empty={<Empty title={t('audit.none')} />} />
      {open ? (
        <Drawer open onClose={() => setOpen(null)} size={Math.min(width, 560)} title={<code>{open.action}</code>}>
          <Facts items={[[t('audit.at'), <Time key="t" at={open.at} />], [t('common.principal'), open.principal || '–'], [t('common.project'), open.project || '–'], [t('audit.object'), <code key="o">{open.object || '–'}</code>], [t('audit.outcome'), named('audit.outcome', open.outcome)], [t('audit.address'), <code key="a">{open.address}</code>], [t('audit.request'), <code key="r">{open.request_id || '–'}</code>]]} />
          <h2 className="form-head">{t('audit.detail')}</h2>
          <Code text={JSON.stringify(open.detail, null, 2)} />
        </Drawer>
      ) : null}
    </div>
  )
}
