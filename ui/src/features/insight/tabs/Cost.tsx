/** What was used, by project, workflow, task or label. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Segmented, Select } from 'antd'
import type { CostBy, CostGroup } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { projects as projectsOf } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { countText, percentText, secondsText } from '@/shared/time/seconds'
import { DataTable, useWidth, type Column } from '@/shared/ui/DataTable'
import { Empty, Loading } from '@/shared/ui/parts'
import { Growth, ShareBar, Tile, WorkflowName } from '../parts'
import { costs as costsOf } from '../queries'
import { COSTS, type TabProps } from '../view'

const GB_HOUR = 3600

export function Cost(props: TabProps) {
  const t = useT()
  const { view, search, onSearch } = props
  const by = search.by ?? (view.one ? 'task' : 'workflow')
  const choice = <Segmented<CostBy> value={by} onChange={(to) => onSearch({ by: to })} aria-label={t('insight.cost.by')} options={COSTS.map((value) => ({ value, label: t(`insight.cost.by.${value}`) }))} />
  return (
    <>
      <div className="insight-lead"><p className="lead">{t('insight.cost.lead')}</p><span className="scrolls">{choice}</span></div>
      {by === 'task' && !view.scope.project ? <ChooseProject {...props} /> : <Costs {...props} by={by} />}
    </>
  )
}

function ChooseProject({ onSearch }: TabProps) {
  const t = useT()
  const { data } = useQuery(projectsOf)
  return (
    <Empty title={t('insight.cost.choose')} action={<Select className="insight-workflow" showSearch aria-label={t('common.project')} placeholder={t('common.project')} value={null} onChange={(project: string | null) => project && onSearch({ project, by: 'task' })} options={(data?.items ?? []).map((one) => ({ value: one.name, label: one.name }))} />}>
      {t('insight.cost.choose.text')}
    </Empty>
  )
}

function Costs({ view, onSearch, by }: TabProps & { by: CostBy }) {
  const t = useT()
  const { language } = useSettings()
  const isNarrow = useWidth() < 640
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(costsOf(view.scope, by))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  const first = data?.pages[0]
  if (!data || !first) return <Loading rows={10} />
  const rows = data.pages.flatMap((page) => page.items)
  const { total, before } = first
  const most = Math.max(0.001, ...rows.map((one) => one.now.slot_s))
  const memory = (value: number): string => t('insight.gbHours', { value: countText(value / GB_HOUR, language) })
  const columns: Column<CostGroup>[] = [
    { key: 'name', title: t(`insight.cost.by.${by}`), width: 'minmax(120px, 1.2fr)', render: (one) => <Name one={one} onSearch={onSearch} /> },
    { key: 'slots', title: t('insight.cost.slots'), width: isNarrow ? 'minmax(120px, 1fr)' : 'minmax(190px, 1.5fr)', render: (one) => <ShareBar share={one.now.slot_s / most} text={secondsText(one.now.slot_s)} /> },
    { key: 'share', title: t('insight.cost.share'), width: '68px', hide: 'narrow', render: (one) => <span className="num">{percentText(one.share)}</span> },
    { key: 'growth', title: t('insight.change'), width: '88px', hide: 'narrow', render: (one) => <Growth now={one.now.slot_s} before={one.before.slot_s} /> },
    { key: 'cpu', title: t('insight.cost.cpu'), width: '104px', hide: 'narrow', render: (one) => <span className="num">{secondsText(one.now.cpu_s)}</span> },
    { key: 'memory', title: t('insight.cost.memory'), width: '112px', hide: 'medium', render: (one) => <span className="num">{memory(one.now.memory_gb_s)}</span> },
    { key: 'attempts', title: t('insight.attempts'), width: '84px', hide: 'medium', render: (one) => <span className="num">{countText(one.now.attempts, language)}</span> },
  ]
  return (
    <>
      <div className="tiles four">
        <Tile label={t('insight.cost.slots')} value={secondsText(total.slot_s)} now={total.slot_s} before={before.slot_s} beforeText={secondsText(before.slot_s)} />
        <Tile label={t('insight.cost.cpu')} value={secondsText(total.cpu_s)} now={total.cpu_s} before={before.cpu_s} beforeText={secondsText(before.cpu_s)} />
        <Tile label={t('insight.cost.memory')} value={memory(total.memory_gb_s)} now={total.memory_gb_s} before={before.memory_gb_s} beforeText={memory(before.memory_gb_s)} />
        <Tile label={t('insight.attempts')} value={countText(total.attempts, language)} now={total.attempts} before={before.attempts} beforeText={countText(before.attempts, language)} />
      </div>
      {rows.length ? (
        <DataTable
          label={t('insight.tab.cost')}
          rows={rows}
          columns={columns}
          rowKey={(one) => [one.project, one.workflow, one.task, one.label, one.value].join('/')}
          rowHeight={36}
          onEnd={() => { if (hasNextPage && !isFetchingNextPage) void fetchNextPage() }}
          footer={<span className="dim num" data-count={rows.length}>{t('common.rows', { count: rows.length })}{hasNextPage ? ' +' : ''}{by === 'label' ? ` · ${t('insight.cost.labels')}` : ''}</span>}
        />
      ) : (
        <Empty title={t(by === 'label' ? 'insight.cost.noLabels' : 'insight.noRuns')}>{t(by === 'label' ? 'insight.cost.noLabels.text' : 'insight.noRuns.text')}</Empty>
      )}
    </>
  )
}

function Name({ one, onSearch }: { one: CostGroup; onSearch: TabProps['onSearch'] }) {
  if (one.label !== null) return <span className="cut mono" title={`${one.label}=${one.value}`}><span className="dim">{one.label}=</span>{one.value}</span>
  const { project, workflow, task } = one
  if (project === null || workflow === null) return <span className="cut strong">{project}</span>
  if (task === null) return <WorkflowName project={project} workflow={workflow} onOpen={() => onSearch({ workflow: `${project}/${workflow}`, by: 'task' })} />
  return <span className="cut" title={`${project}/${workflow} · ${task}`}><span className="dim">{workflow} · </span><span className="mono">{task}</span></span>
}
