/** Lists of the API, page after page, as tables: loading, failed, empty and 10,000 rows. */
import { infiniteQueryOptions, keepPreviousData, useInfiniteQuery, type UseInfiniteQueryOptions } from '@tanstack/react-query'
import { useMemo, type ReactNode } from 'react'
import { useT } from '@/shared/i18n'
import { DataTable, type Column } from '@/shared/ui/DataTable'
import { Loading } from '@/shared/ui/parts'
import { Trouble } from './marks'

export interface Page<T> {
  items: T[]
  next?: string | null
}

/** A list under a key; `ask` fetches the page behind a cursor. */
export function pagesOf<T>(queryKey: readonly unknown[], ask: (cursor: string | undefined) => Promise<Page<T>>) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }) => ask(pageParam ?? undefined),
    initialPageParam: null as string | null,
    getNextPageParam: (page: Page<T>) => page.next ?? null,
    placeholderData: keepPreviousData,
  })
}

export interface Rows<T> {
  rows: T[]
  error: Error | null
  isPending: boolean
  hasMore: boolean
  more: () => void
  again: () => void
}

/** Returns the rows that have come so far, and how to get more. */
export function useRows<T>(options: ReturnType<typeof pagesOf<T>>): Rows<T> {
  const list = useInfiniteQuery(options as unknown as UseInfiniteQueryOptions<{ pages: Page<T>[] }, Error, { pages: Page<T>[] }, readonly unknown[], string | null>)
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data])
  return {
    rows,
    error: list.error,
    isPending: list.isPending,
    hasMore: list.hasNextPage,
    more: () => {
      if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage()
    },
    again: () => void list.refetch(),
  }
}

interface Props<T> {
  list: Rows<T>
  label: string
  columns: readonly Column<T>[]
  rowKey: (row: T) => string | number
  empty: ReactNode
  onOpen?: (row: T) => void
  rowHeight?: number
  isChosen?: (row: T) => boolean
  aside?: ReactNode
}

export function ListTable<T>({ list, empty, aside, ...table }: Props<T>) {
  const t = useT()
  if (list.error && !list.rows.length) return <Trouble error={list.error} retry={list.again} />
  if (list.isPending) return <Loading rows={8} />
  if (!list.rows.length) return <>{empty}</>
  return (
    <DataTable
      {...table}
      rows={list.rows}
      onEnd={list.more}
      footer={<><span className="dim num" data-count={list.rows.length}>{t('common.rows', { count: list.rows.length })}{list.hasMore ? ' +' : ''}</span>{aside}</>}
    />
  )
}
