/** All runs, the newest first: by project, workflow and state. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { Button, Input, Select } from 'antd'
import type { WorkflowState } from '@/api/types'
import { StateMark, Trouble } from '@/entities/marks'
import { runs } from '@/entities/queries'
import { RunTable } from '@/entities/RunTable'
import { RUN_STATES } from '@/entities/states'
import { useT } from '@/shared/i18n'
import { Empty, Loading, PageHead } from '@/shared/ui/parts'

export interface RunsSearch {
  workflow?: string | undefined
  state?: WorkflowState[] | undefined
}

interface Props {
  project: string | undefined
  search: RunsSearch
  onSearch: (to: RunsSearch) => void
  onOpen: (id: number) => void
}

export function RunsPage({ project, search, onSearch, onOpen }: Props) {
  const t = useT()
  const list = useInfiniteQuery(runs({ project, workflow: search.workflow, state: search.state }))
  const rows = list.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <>
      <PageHead title={t('runs.title')} />
      <div className="filters">
        <Input
          allowClear
          data-search
          className="filter-text"
          placeholder={t('common.workflow')}
          aria-label={t('common.workflow')}
          defaultValue={search.workflow}
          onPressEnter={(event) => onSearch({ ...search, workflow: event.currentTarget.value || undefined })}
          onClear={() => onSearch({ ...search, workflow: undefined })}
        />
        <Select
          mode="multiple"
          allowClear
          className="filter-state"
          placeholder={t('runs.states')}
          aria-label={t('common.state')}
          value={search.state ?? []}
          onChange={(state: WorkflowState[]) => onSearch({ ...search, state: state.length ? state : undefined })}
          options={RUN_STATES.map((state) => ({ value: state, label: <StateMark state={state} /> }))}
        />
      </div>
      {list.error ? <Trouble error={list.error} retry={() => void list.refetch()} /> : null}
      {list.isPending ? <Loading rows={10} /> : null}
      {list.data && !rows.length ? <Empty title={t('runs.empty')} /> : null}
      {rows.length ? (
        <RunTable
          rows={rows}
          onOpen={onOpen}
          footer={
            <>
              <span className="dim num">{t('common.rows', { count: rows.length })}{list.hasNextPage ? ' +' : ''}</span>
              {list.hasNextPage ? <Button size="small" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{t('common.more')}</Button> : null}
            </>
          }
        />
      ) : null}
    </>
  )
}
