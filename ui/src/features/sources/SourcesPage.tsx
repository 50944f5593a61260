/** Data sources of a project: where databases and services are, and whether workers reach them. */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Button, Tag } from 'antd'
import { useState } from 'react'
import { api, onlyIf, take, takeTagged } from '@/api/client'
import type { DataSource, DataSourceKind } from '@/api/types'
import { ListTable, pagesOf, useRows } from '@/entities/lists'
import { Act, useRefusal } from '@/entities/marks'
import { ProjectTabs } from '@/entities/ProjectTabs'
import { useAsk, useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty, PageHead } from '@/shared/ui/parts'
import { Probe } from './Probe'
import { SourceForm } from './SourceForm'

const LIMIT = 200

export const kindsOf = queryOptions({
  queryKey: ['data-source-kinds'],
  queryFn: () => take(api.GET('/api/v1/data-source-kinds', { params: { query: { limit: LIMIT } } })),
  staleTime: Infinity,
})

interface Props {
  project: string
  /** The one whose form is open; `new`: of another. */
  open: string | undefined
  onOpen: (name: string | undefined) => void
}

export function SourcesPage({ project, open, onOpen }: Props) {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal('connection.edit', project)
  const kinds = useQuery(kindsOf)
  const [tested, setTested] = useState<string | null>(null)
  const key = ['data-sources', project]
  const list = useRows<DataSource>(pagesOf(key, (cursor) => take(api.GET('/api/v1/projects/{project}/data-sources', { params: { path: { project }, query: { limit: LIMIT, cursor } } }))))
  const titleOf = (kind: string): string => kinds.data?.items.find((one: DataSourceKind) => one.kind === kind)?.title ?? kind
  const remove = async (name: string): Promise<void> => {
    const at = { path: { project, name } }
    const { etag } = await takeTagged(api.GET('/api/v1/projects/{project}/data-sources/{name}', { params: at }))
    await take(api.DELETE('/api/v1/projects/{project}/data-sources/{name}', { params: { ...at, header: onlyIf(etag) } }))
  }
  const columns: Column<DataSource>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (row) => <code>{row.name}</code> },
    { key: 'kind', title: t('sources.kind'), width: 'minmax(90px, 0.8fr)', hide: 'narrow', render: (row) => titleOf(row.kind) },
    { key: 'where', title: t('sources.where'), width: 'minmax(120px, 2fr)', render: (row) => <span className="mono cut dim" title={whereOf(row)}>{whereOf(row)}</span> },
    { key: 'shared', title: t('sources.shared'), width: 'minmax(90px, 1fr)', hide: 'medium', render: (row) => row.shared_with.map((one) => <Tag key={one}>{one}</Tag>) },
    { key: 'at', title: t('common.changed'), width: 'minmax(190px, 210px)', hide: 'medium', render: (row) => <Time at={row.updated_at} /> },
    {
      key: 'ways',
      title: <span className="hidden">{t('sources.test')}</span>,
      width: '150px',
      render: (row) => (
        <span className="row ways">
          <Act size="small" refusal={refusal} onClick={() => setTested(row.name)}>{t('sources.test')}…<span className="hidden"> {row.name}</span></Act>
          <Act size="small" type="text" danger refusal={refusal} onClick={() => ask({ title: `${t('common.delete')}: ${row.name}`, text: t('sources.delete.text'), ok: t('common.delete'), act: () => act(() => remove(row.name), t('common.deleted', { name: row.name }), [key]) })}>{t('common.delete')}<span className="hidden"> {row.name}</span></Act>
        </span>
      ),
    },
  ]
  const adding = <Act refusal={refusal} type="primary" onClick={() => onOpen('new')}>{t('sources.add')}</Act>
  return (
    <div className="page-fill">
      <PageHead crumbs={<Link to="/projects/$project/settings" params={{ project }}>{project}</Link>} title={t('sources.title')}>{list.rows.length ? adding : null}</PageHead>
      <ProjectTabs project={project} here="sources" />
      <ListTable list={list} label={t('sources.title')} columns={columns} rowKey={(row) => row.name} onOpen={(row) => onOpen(row.name)} empty={<Empty title={t('sources.none')} action={adding}>{t('sources.none.text')}</Empty>} />
      {open && kinds.data ? (
        <SourceForm
          key={open}
          project={project}
          name={open === 'new' ? null : open}
          kinds={kinds.data.items}
          refusal={refusal}
          renew={key}
          aside={open === 'new' ? null : <Button onClick={() => setTested(open)}>{t('sources.test')}…</Button>}
          onClose={() => onOpen(undefined)}
        />
      ) : null}
      {tested ? <Probe project={project} name={tested} refusal={refusal} onClose={() => setTested(null)} /> : null}
    </div>
  )
}

function whereOf({ host, port, database, user }: DataSource): string {
  const place = host ? `${host}${port ? `:${port}` : ''}${database ? `/${database}` : ''}` : database
  return user ? `${user}@${place}` : place
}
