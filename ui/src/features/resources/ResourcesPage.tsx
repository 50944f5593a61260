/** Files of a project: by folder, with their versions; uploaded, edited, compared. */
import { DeleteOutlined, DownloadOutlined, FileOutlined, FolderOutlined } from '@ant-design/icons'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Breadcrumb, Button } from 'antd'
import { useMemo, useState } from 'react'
import { api, take } from '@/api/client'
import type { Resource } from '@/api/types'
import { pagesOf, useRows } from '@/entities/lists'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { ProjectTabs } from '@/entities/ProjectTabs'
import { useAsk, useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/resources'
import { bytesText } from '@/shared/time/format'
import { Time } from '@/shared/time/Time'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading, PageHead } from '@/shared/ui/parts'
import { contentUrl } from './content'
import { entriesOf, type Entry } from './folders'
import { NewFile } from './NewFile'
import { ResourceDrawer, type ResourceTab } from './ResourceDrawer'
import { Upload } from './Upload'

const LIMIT = 500

export interface ResourcesSearch {
  folder?: string | undefined
  file?: string | undefined
  version?: number | undefined
  panel?: ResourceTab | undefined
}

interface Props {
  project: string
  search: ResourcesSearch
  onSearch: (to: ResourcesSearch) => void
}

export function ResourcesPage({ project, search, onSearch }: Props) {
  const t = useT()
  const queries = useQueryClient()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal('project.edit', project)
  const folder = search.folder ?? ''
  const key = ['resources', project]
  const list = useRows<Resource>(pagesOf([...key, folder], (cursor) => take(api.GET('/api/v1/projects/{project}/resources', { params: { path: { project }, query: { folder, limit: LIMIT, cursor } } }))))
  const entries = useMemo(() => entriesOf(list.rows, folder), [list.rows, folder])
  const [open, setOpen] = useState<'upload' | 'new' | null>(null)
  const renew = (): void => void queries.invalidateQueries({ queryKey: key })
  const to = (path: string): void => onSearch({ folder: path || undefined })
  const remove = (entry: Entry): void =>
    ask({
      title: `${t('common.delete')}: ${entry.path}`,
      text: t('resources.delete.text'),
      ok: t('common.delete'),
      act: () => act(() => take(api.DELETE('/api/v1/projects/{project}/resources/{path}', { params: { path: { project, path: entry.path } } })), t('common.deleted', { name: entry.path }), [key]),
    })
  const columns: Column<Entry>[] = [
    {
      key: 'name',
      title: t('common.name'),
      width: 'minmax(140px, 2fr)',
      render: (entry) => (
        <span className="row">
          {entry.file ? <FileOutlined aria-hidden className="dim" /> : <FolderOutlined aria-hidden />}
          <button type="button" className="link mono cut" onClick={() => (entry.file ? onSearch({ ...search, file: entry.path, version: undefined, panel: undefined }) : to(entry.path))}>{entry.name}</button>
        </span>
      ),
    },
    { key: 'size', title: t('resources.size'), width: '96px', render: (entry) => <span className="num dim">{entry.file ? bytesText(entry.size) : t('resources.files', { count: entry.files })}</span> },
    { key: 'version', title: t('resources.version'), width: '80px', hide: 'narrow', render: (entry) => (entry.file ? <span className="num">{`@${entry.file.version}`}</span> : null) },
    { key: 'at', title: t('common.changed'), width: 'minmax(190px, 210px)', hide: 'medium', render: (entry) => (entry.file ? <Time at={entry.file.created_at} /> : null) },
    { key: 'by', title: t('backfill.run'), width: '90px', hide: 'medium', render: (entry) => (entry.file?.instance_id ? <Link className="num" to="/runs/$id" params={{ id: String(entry.file.instance_id) }}>#{entry.file.instance_id}</Link> : null) },
    {
      key: 'ways',
      title: <span className="hidden">{t('common.edit')}</span>,
      width: '76px',
      render: (entry) => (
        <span className="row ways">
          {entry.file ? <Button size="small" type="text" icon={<DownloadOutlined />} aria-label={`${t('resources.download')} ${entry.name}`} href={contentUrl(project, entry.path)} download={entry.name} /> : null}
          <Act size="small" type="text" danger icon={<DeleteOutlined />} aria-label={`${t('common.delete')} ${entry.name}`} refusal={refusal} onClick={() => remove(entry)} />
        </span>
      ),
    },
  ]
  const parts = folder ? folder.split('/') : []
  const ways = (
    <>
      <Act refusal={refusal} onClick={() => setOpen('new')}>{t('resources.new')}…</Act>
      <Act refusal={refusal} type="primary" onClick={() => setOpen('upload')}>{t('resources.upload')}…</Act>
    </>
  )
  return (
    <div className="page-fill">
      <PageHead crumbs={<Link to="/projects/$project/settings" params={{ project }}>{project}</Link>} title={t('resources.title')}>{ways}</PageHead>
      <ProjectTabs project={project} here="resources" />
      <Breadcrumb
        items={[
          { key: '', title: <button type="button" className="link" onClick={() => to('')}>{t('resources.root')}</button> },
          ...parts.map((part, index) => ({ key: index, title: <button type="button" className="link mono" onClick={() => to(parts.slice(0, index + 1).join('/'))}>{part}</button> })),
        ]}
      />
      {list.error && !list.rows.length ? <Trouble error={list.error} retry={list.again} /> : null}
      {list.isPending ? <Loading rows={8} /> : null}
      {!list.isPending && !list.error && !entries.length ? <Empty title={t('resources.none')} action={<div className="row">{ways}</div>}>{t('resources.none.text')}</Empty> : null}
      {entries.length ? (
        <DataTable
          label={t('resources.title')}
          rows={entries}
          columns={columns}
          rowKey={(entry) => entry.path}
          rowHeight={36}
          isChosen={(entry) => entry.path === search.file}
          onOpen={(entry) => (entry.file ? onSearch({ ...search, file: entry.path, version: undefined, panel: undefined }) : to(entry.path))}
          onEnd={list.more}
          footer={<span className="dim num">{t('common.rows', { count: entries.length })}{list.hasMore ? ' +' : ''}</span>}
        />
      ) : null}
      {search.file ? (
        <ResourceDrawer
          key={search.file}
          project={project}
          path={search.file}
          version={search.version}
          tab={search.panel}
          refusal={refusal}
          onChange={(change) => onSearch({ ...search, ...change })}
          onStored={renew}
          onClose={() => onSearch({ folder: search.folder })}
        />
      ) : null}
      {open === 'upload' ? <Upload project={project} folder={folder} refusal={refusal} onStored={renew} onClose={() => setOpen(null)} /> : null}
      {open === 'new' ? <NewFile project={project} folder={folder} refusal={refusal} onClose={() => setOpen(null)} onStored={(path) => { renew(); onSearch({ ...search, file: path }) }} /> : null}
    </div>
  )
}
