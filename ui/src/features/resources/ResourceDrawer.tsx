/** One file: its content as text, edited; its versions, and what each has changed. */
import { DownloadOutlined } from '@ant-design/icons'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Alert, App, Button, Drawer, Input, Select, Tabs } from 'antd'
import { useState } from 'react'
import { api, ApiProblem, take } from '@/api/client'
import type { Resource } from '@/api/types'
import { ListTable, pagesOf, useRows } from '@/entities/lists'
import { Act, Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { bytesText } from '@/shared/time/format'
import { Time } from '@/shared/time/Time'
import { useWidth, type Column } from '@/shared/ui/DataTable'
import { Diff } from '@/shared/ui/Diff'
import { Code, Empty, Loading } from '@/shared/ui/parts'
import { contentUrl, MOST_TEXT, readText, store } from './content'

export type ResourceTab = 'content' | 'versions' | 'diff'
const LIMIT = 100

interface Props {
  project: string
  path: string
  version: number | undefined
  tab: ResourceTab | undefined
  refusal: string | null
  onChange: (to: { version?: number | undefined; panel?: ResourceTab | undefined }) => void
  onStored: () => void
  onClose: () => void
}

export function ResourceDrawer({ project, path, version, tab, refusal, onChange, onStored, onClose }: Props) {
  const t = useT()
  const width = useWidth()
  const list = useRows<Resource>(pagesOf(['resources', project, 'versions', path], (cursor) => take(api.GET('/api/v1/projects/{project}/resource-versions/{path}', { params: { path: { project, path }, query: { limit: LIMIT, cursor } } }))))
  const newest = list.rows[0]
  const shown = list.rows.find((one) => one.version === version) ?? newest
  return (
    <Drawer
      open
      onClose={onClose}
      size={Math.min(width, Math.max(760, width * 0.6))}
      title={<span className="row"><code>{path}</code>{shown ? <span className="dim num">{`@${shown.version}`}</span> : null}</span>}
      extra={shown ? <Button size="small" icon={<DownloadOutlined />} href={contentUrl(project, path, shown.version)} download={path.split('/').at(-1)}>{t('resources.download')} <span className="dim num">{bytesText(shown.size)}</span></Button> : undefined}
      classNames={{ body: 'attempt-body' }}
      destroyOnHidden
    >
      {list.error ? <Trouble error={list.error} retry={list.again} /> : null}
      {!shown && !list.error ? <Loading rows={8} /> : null}
      {shown && newest ? (
        <Tabs
          className="fill-tabs"
          size="small"
          activeKey={tab ?? 'content'}
          onChange={(key) => onChange({ panel: key as ResourceTab })}
          destroyOnHidden
          items={[
            { key: 'content', label: t('resources.content'), children: <Content key={shown.version} project={project} shown={shown} newest={newest.version} refusal={refusal} onStored={() => { list.again(); onStored(); onChange({ version: undefined }) }} /> },
            { key: 'versions', label: t('resources.versions'), children: <Versions list={list} project={project} path={path} onShow={(one) => onChange({ version: one, panel: 'content' })} onDiff={(one) => onChange({ version: one, panel: 'diff' })} /> },
            { key: 'diff', label: t('resources.diff'), children: <Changes project={project} path={path} versions={list.rows} shown={shown} onShow={(one) => onChange({ version: one })} /> },
          ]}
        />
      ) : null}
    </Drawer>
  )
}

function useText(project: string, path: string, version: number, size: number) {
  return useQuery({
    queryKey: ['resource-text', project, path, version],
    queryFn: () => readText(project, path, version),
    enabled: size <= MOST_TEXT,
    staleTime: Infinity, // a version never changes
  })
}

function Content({ project, shown, newest, refusal, onStored }: { project: string; shown: Resource; newest: number; refusal: string | null; onStored: () => void }) {
  const t = useT()
  const queries = useQueryClient()
  const { message } = App.useApp()
  const { path } = shown
  const { data: text, error, isPending } = useText(project, path, shown.version, shown.size)
  const [edited, setEdited] = useState<string | null>(null)
  const [base, setBase] = useState(newest)
  const [failed, setFailed] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  if (shown.size > MOST_TEXT || text === null) return <Empty title={t('resources.notText', { size: bytesText(shown.size) })} />
  if (error) return <Trouble error={error} />
  if (isPending || text === undefined) return <Loading rows={8} />
  const save = async (): Promise<void> => {
    setBusy(true)
    setFailed(null)
    try {
      const stored = await store(project, path, new Blob([edited ?? '']), base, () => undefined)
      void message.success(t('common.saved', { name: `${path}@${stored.version}` }))
      setEdited(null)
      onStored()
    } catch (thrown) {
      const problem = thrown as ApiProblem
      setFailed(problem)
      if (problem.status === 409) {
        // From now on it is an edit of the newest version, once its changes were seen.
        const now = await take(api.GET('/api/v1/projects/{project}/resources/{path}', { params: { path: { project, path } } })).catch(() => null)
        if (now) setBase(now.version)
        await queries.invalidateQueries({ queryKey: ['resources', project] })
      }
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="stack fill">
      <div className="row">
        {edited === null ? (
          <Act refusal={refusal} size="small" onClick={() => { setEdited(text); setBase(newest) }}>{t('resources.asText')}</Act>
        ) : (
          <>
            <Act refusal={refusal} size="small" type="primary" loading={isBusy} disabled={edited === text && base === newest} onClick={() => void save()}>{t('resources.saveAs', { version: base + 1 })}</Act>
            <Button size="small" onClick={() => { setEdited(null); setFailed(null) }}>{t('common.cancel')}</Button>
          </>
        )}
        <span className="grow" />
        <span className="dim small"><Time at={shown.created_at} /></span>
      </div>
      {failed?.status === 409 ? <Alert type="warning" showIcon title={t('resources.stale', { version: base })} /> : failed ? <Trouble error={failed} /> : null}
      {edited === null ? <Code text={text} /> : <Input.TextArea className="mono file-text" aria-label={path} spellCheck={false} value={edited} onChange={(event) => setEdited(event.target.value)} />}
    </div>
  )
}

function Versions({ list, project, path, onShow, onDiff }: { list: ReturnType<typeof useRows<Resource>>; project: string; path: string; onShow: (version: number) => void; onDiff: (version: number) => void }) {
  const t = useT()
  const columns: Column<Resource>[] = [
    { key: 'version', title: t('resources.version'), width: '72px', render: (one) => <strong className="num">{`@${one.version}`}</strong> },
    { key: 'at', title: t('common.created'), width: 'minmax(150px, 1fr)', render: (one) => <Time at={one.created_at} /> },
    { key: 'size', title: t('resources.size'), width: '84px', hide: 'narrow', render: (one) => <span className="num">{bytesText(one.size)}</span> },
    { key: 'by', title: t('backfill.run'), width: '90px', hide: 'medium', render: (one) => (one.instance_id ? <Link to="/runs/$id" params={{ id: String(one.instance_id) }}>#{one.instance_id}</Link> : null) },
    { key: 'sha', title: 'SHA-256', width: '110px', hide: 'medium', render: (one) => <code className="dim" title={one.sha256}>{one.sha256.slice(0, 12)}</code> },
    {
      key: 'ways',
      title: <span className="hidden">{t('resources.diff')}</span>,
      width: '132px',
      render: (one) => (
        <span className="row ways">
          <Button size="small" type="text" onClick={() => onDiff(one.version)}>{t('resources.diff')}</Button>
          <Button size="small" type="text" icon={<DownloadOutlined />} aria-label={`${t('resources.download')} @${one.version}`} href={contentUrl(project, path, one.version)} download={path.split('/').at(-1)} />
        </span>
      ),
    },
  ]
  return <ListTable list={list} label={t('resources.versions')} columns={columns} rowKey={(one) => one.version} rowHeight={34} onOpen={(one) => onShow(one.version)} empty={<Empty title={t('resources.none')} />} />
}

function Changes({ project, path, versions, shown, onShow }: { project: string; path: string; versions: readonly Resource[]; shown: Resource; onShow: (version: number) => void }) {
  const t = useT()
  const before = versions.find((one) => one.version < shown.version)
  const [base, setBase] = useState<number | undefined>()
  const from = versions.find((one) => one.version === base) ?? before
  const old = useText(project, path, from?.version ?? 0, from ? from.size : Infinity)
  const now = useText(project, path, shown.version, shown.size)
  const options = versions.map((one) => ({ value: one.version, label: `@${one.version}` }))
  if (now.data === null || old.data === null || shown.size > MOST_TEXT) return <Empty title={t('resources.notText', { size: bytesText(shown.size) })} />
  return (
    <div className="stack">
      <div className="row">
        <Select size="small" aria-label={t('backfill.from')} value={from?.version ?? null} onChange={(value: number) => setBase(value)} options={options} />
        <span aria-hidden>→</span>
        <Select size="small" aria-label={t('resources.version')} value={shown.version} onChange={onShow} options={options} />
      </div>
      {old.error || now.error ? <Trouble error={(old.error ?? now.error) as Error} /> : null}
      {from === undefined ? now.data === undefined ? <Loading /> : <Diff before="" after={now.data} same={t('resources.same')} /> : old.data === undefined || now.data === undefined ? <Loading /> : <Diff before={old.data} after={now.data} same={t('resources.same')} />}
    </div>
  )
}
