/** What the pages of Insight ask for. Results are made once a day, so nothing is asked for again soon. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, take } from '@/api/client'
import type { CostBy, InsightSort } from '@/api/types'
import { pagesOf } from '@/entities/lists'

const STALE_MS = 600_000
const LIMIT = 100
const MOST = 200

/** What an answer is about. */
export interface Scope {
  project?: string | undefined
  workflow?: string | undefined
  from: string
  to: string
}

/** The newest result; its day is null where there is none. */
export const newestResult = queryOptions({
  queryKey: ['insight', 'newest'],
  queryFn: () => take(api.GET('/api/v1/insight/rollups', { params: { query: { limit: 1 } } })),
  staleTime: STALE_MS,
})

export const summary = (scope: Scope) =>
  queryOptions({
    queryKey: ['insight', 'summary', scope],
    queryFn: () => take(api.GET('/api/v1/insight/summary', { params: { query: { ...scope } } })),
    staleTime: STALE_MS,
    placeholderData: keepPreviousData,
  })

export const workflowTrends = (scope: Scope, sort: InsightSort) => ({
  ...pagesOf(['insight', 'workflows', scope, sort], (cursor) => take(api.GET('/api/v1/insight/workflows', { params: { query: { ...scope, sort, limit: LIMIT, cursor } } }))),
  staleTime: STALE_MS,
})

/** The first few of them. */
export const firstTrends = (scope: Scope, sort: InsightSort, limit: number) =>
  queryOptions({
    queryKey: ['insight', 'first', scope, sort, limit],
    queryFn: () => take(api.GET('/api/v1/insight/workflows', { params: { query: { ...scope, sort, limit } } })),
    staleTime: STALE_MS,
    placeholderData: keepPreviousData,
  })

/** Of the workflow that the scope names. */
export const taskTrends = (scope: Scope) => ({
  ...pagesOf(['insight', 'tasks', scope], (cursor) => take(api.GET('/api/v1/insight/tasks', { params: { query: { ...scope, limit: MOST, cursor } } }))),
  staleTime: STALE_MS,
})

export const failures = (scope: Scope, limit: number) =>
  infiniteQueryOptions({
    queryKey: ['insight', 'failures', scope, limit],
    queryFn: ({ pageParam }) => take(api.GET('/api/v1/insight/failures', { params: { query: { ...scope, limit, cursor: pageParam ?? undefined } } })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    staleTime: STALE_MS,
    placeholderData: keepPreviousData,
  })

export const costs = (scope: Scope, by: CostBy) =>
  infiniteQueryOptions({
    queryKey: ['insight', 'costs', scope, by],
    queryFn: ({ pageParam }) => take(api.GET('/api/v1/insight/costs', { params: { query: { ...scope, by, limit: LIMIT, cursor: pageParam ?? undefined } } })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    staleTime: STALE_MS,
    placeholderData: keepPreviousData,
  })

export const load = (from: string, to: string) =>
  queryOptions({
    queryKey: ['insight', 'load', from, to],
    queryFn: () => take(api.GET('/api/v1/insight/load', { params: { query: { from, to } } })),
    staleTime: STALE_MS,
    placeholderData: keepPreviousData,
  })

export const scheduleMinutes = queryOptions({
  queryKey: ['insight', 'schedule-minutes'],
  queryFn: () => take(api.GET('/api/v1/insight/schedule-minutes')),
  staleTime: STALE_MS,
})

/** Attempts that failed for one cause, the newest first. */
export const attemptsOf = (fingerprint: string, { project, workflow, from, to }: Scope) =>
  pagesOf(['insight', 'attempts', fingerprint, project, workflow, from, to], (cursor) =>
    take(api.GET('/api/v1/task-instances', { params: { query: { fingerprint, project, workflow, finished_since: `${from}T00:00:00Z`, finished_until: `${to}T23:59:59Z`, limit: LIMIT, cursor } } })),
  )
