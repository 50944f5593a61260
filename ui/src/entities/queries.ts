/** What is asked of the API, with the keys under which answers are kept. Events renew them. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { api, ApiProblem, take } from '@/api/client'
import type { Quarantined, QuarantinedRef, RunQuery, WorkflowSort } from '@/api/types'
import { pagesOf } from './lists'

const PAGE = 100
export const LOG_BYTES = 64 * 1024 // of one part

export const me = queryOptions({
  queryKey: ['me'],
  queryFn: () => take(api.GET('/api/v1/me')),
  staleTime: 60_000,
  retry: (count, error) => !(error instanceof ApiProblem && error.status === 401) && count < 2,
})

export const projects = queryOptions({
  queryKey: ['projects'],
  queryFn: () => take(api.GET('/api/v1/projects', { params: { query: { limit: 200 } } })),
})

/** Each with so many of its last `runs`. */
export const workflows = (project: string | undefined, search: string | undefined, sort: WorkflowSort, runs: number) =>
  infiniteQueryOptions({
    queryKey: ['workflows', 'list', { project, search, sort, runs }],
    queryFn: ({ pageParam }) =>
      take(api.GET('/api/v1/workflows', { params: { query: { project, search: search || undefined, sort, runs, limit: PAGE, cursor: pageParam ?? undefined } } })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    placeholderData: keepPreviousData,
  })

export const workflow = (project: string, name: string) =>
  queryOptions({
    queryKey: ['workflows', 'one', project, name],
    queryFn: () => take(api.GET('/api/v1/projects/{project}/workflows/{name}', { params: { path: { project, name } } })),
  })

/** What waits for what on a day, around a workflow or in a whole project. */
export const dependencyGraph = (project: string, workflow: string | undefined, date: string, hops: number) =>
  queryOptions({
    queryKey: ['dependencies', project, workflow, date, hops],
    queryFn: () => take(api.GET('/api/v1/projects/{project}/dependency-graph', { params: { path: { project }, query: { workflow, date, hops } } })),
    placeholderData: keepPreviousData,
  })

/** Where people have put the tasks of a workflow; null: it is there no more, or was never published. */
export const layout = (project: string, name: string) =>
  queryOptions({
    queryKey: ['layout', project, name],
    queryFn: () => take(api.GET('/api/v1/projects/{project}/workflows/{name}/layout', { params: { path: { project, name } } })).catch(gone),
    staleTime: 60_000,
  })

function gone(error: unknown): null {
  if (error instanceof ApiProblem && error.status === 404) return null
  throw error
}

export const versions = (project: string, name: string) =>
  queryOptions({
    queryKey: ['workflows', 'versions', project, name],
    queryFn: () =>
      take(api.GET('/api/v1/projects/{project}/workflows/{name}/versions', { params: { path: { project, name }, query: { limit: PAGE } } })),
  })

export const version = (project: string, name: string, number: number) =>
  queryOptions({
    queryKey: ['version', project, name, number],
    queryFn: () =>
      take(
        api.GET('/api/v1/projects/{project}/workflows/{name}/versions/{version}', {
          params: { path: { project, name, version: number } },
        }),
      ),
    staleTime: Infinity, // a version never changes
  })

export const workflowSchedules = (project: string, name: string) =>
  queryOptions({
    queryKey: ['schedules', project, name],
    queryFn: () =>
      take(api.GET('/api/v1/projects/{project}/workflows/{name}/schedules', { params: { path: { project, name } } })),
  })

export const preview = (id: number) =>
  queryOptions({
    queryKey: ['schedules', 'preview', id],
    queryFn: () => take(api.GET('/api/v1/schedules/{schedule_id}/preview', { params: { path: { schedule_id: id } } })),
  })

/** What runs are chosen by; `limit` is of one page. */
export type RunFilter = { [K in Exclude<keyof RunQuery, 'cursor'>]?: RunQuery[K] | undefined }

/** The newest runs, as one page. */
export const recentRuns = (filter: RunFilter) =>
  queryOptions({
    queryKey: ['instances', filter],
    queryFn: () => take(api.GET('/api/v1/instances', { params: { query: filter } })),
    placeholderData: keepPreviousData,
  })

/** All runs, page after page. */
export const runs = (filter: RunFilter) =>
  pagesOf(['instances', 'pages', filter], (cursor) =>
    take(api.GET('/api/v1/instances', { params: { query: { ...filter, limit: PAGE, cursor } } })),
  )

/** How many runs match, as far as it is counted. */
export const runCounts = (filter: RunFilter) =>
  queryOptions({
    queryKey: ['instances', 'counts', filter],
    queryFn: () => take(api.GET('/api/v1/instance-counts', { params: { query: filter } })),
    placeholderData: keepPreviousData,
  })

/** Lanes of workflows in a window of time, page after page; those that need somebody come first. */
export const today = (project: string | undefined, since: string, until: string) =>
  infiniteQueryOptions({
    queryKey: ['instances', 'today', { project, since, until }],
    queryFn: ({ pageParam }) => take(api.GET('/api/v1/today', { params: { query: { project, since, until, limit: LANES, cursor: pageParam ?? undefined } } })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    placeholderData: keepPreviousData,
    refetchInterval: 30_000, // no event tells of what is late
  })

const LANES = 60
const GRID_RUNS = 50

/** Runs by tasks, page after page. Events renew it as they do lists of runs. */
export const grid = (project: string, name: string) =>
  infiniteQueryOptions({
    queryKey: ['instances', 'grid', project, name],
    queryFn: ({ pageParam }) =>
      take(api.GET('/api/v1/projects/{project}/workflows/{name}/grid', { params: { path: { project, name }, query: { limit: GRID_RUNS, cursor: pageParam ?? undefined } } })),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  })

/** What became of the days of a year, page after page. */
export const yearDays = (project: string, name: string, year: number) =>
  pagesOf(['instances', 'days', project, name, year], (cursor) =>
    take(
      api.GET('/api/v1/projects/{project}/workflows/{name}/days', {
        params: { path: { project, name }, query: { first: `${year}-01-01`, limit: isLeap(year) ? 366 : 365, cursor } },
      }),
    ),
  )

function isLeap(year: number): boolean {
  return new Date(Date.UTC(year, 1, 29)).getUTCMonth() === 1
}

export const run = (id: number) =>
  queryOptions({
    queryKey: ['instance', id],
    queryFn: () => take(api.GET('/api/v1/instances/{instance_id}', { params: { path: { instance_id: id } } })),
  })

/** The run against what is usual for it. */
export const baseline = (id: number) =>
  queryOptions({
    queryKey: ['baseline', id],
    queryFn: () => take(api.GET('/api/v1/instances/{instance_id}/baseline', { params: { path: { instance_id: id } } })),
  })

export const attempts = (id: number) =>
  queryOptions({
    queryKey: ['instance', id, 'all'],
    queryFn: () =>
      take(
        api.GET('/api/v1/instances/{instance_id}', {
          params: { path: { instance_id: id }, query: { attempts: 'all' } },
        }),
      ),
  })

export const whyRun = (id: number) =>
  queryOptions({
    queryKey: ['why', id],
    queryFn: () => take(api.GET('/api/v1/instances/{instance_id}/why', { params: { path: { instance_id: id } } })),
  })

export const whyTask = (instance: number, id: number) =>
  queryOptions({
    queryKey: ['why', instance, id],
    queryFn: () =>
      take(api.GET('/api/v1/task-instances/{task_instance_id}/why', { params: { path: { task_instance_id: id } } })),
  })

export const task = (id: number) =>
  queryOptions({
    queryKey: ['task', id],
    queryFn: () =>
      take(api.GET('/api/v1/task-instances/{task_instance_id}', { params: { path: { task_instance_id: id } } })),
  })

export const cluster = queryOptions({
  queryKey: ['cluster'],
  queryFn: () => take(api.GET('/api/v1/cluster')),
  refetchInterval: 5000, // no event tells of load
})

/** What waits for the workers of one group, or of all. */
export const queueEntries = (group: string | undefined) => ({
  ...pagesOf(['cluster', 'queue', group], (cursor) => take(api.GET('/api/v1/queue-entries', { params: { query: { group, cursor, limit: 100 } } }))),
  refetchInterval: 5000, // no event tells of places
})

export const takeovers = pagesOf(['cluster', 'takeovers'], (cursor) => take(api.GET('/api/v1/takeovers', { params: { query: { cursor, limit: 100 } } })))

export const quarantined = {
  ...pagesOf(['cluster', 'quarantine'], (cursor) => take(api.GET('/api/v1/quarantine', { params: { query: { cursor, limit: 100 } } }))),
  refetchInterval: 5000, // no event tells of it
}

/** Names an item as the API wants it: what lists show has been read from the same API. */
const itemOf = ({ consumer, kind, item }: Quarantined) => ({ consumer, kind, item }) as QuarantinedRef

export function retryQuarantined(one: Quarantined) {
  return take(api.POST('/api/v1/quarantine-retries', { body: itemOf(one) }))
}

export function discardQuarantined(one: Quarantined) {
  return take(api.POST('/api/v1/quarantine-discards', { body: itemOf(one) }))
}

/** Reads a part of a log; a negative offset counts from its end. */
export function readLog(id: number, offset: number, limit: number) {
  return take(
    api.GET('/api/v1/task-instances/{task_instance_id}/log', {
      params: { path: { task_instance_id: id }, query: { offset, limit } },
    }),
  )
}

export const backfills = (filter: { project?: string | undefined; workflow?: string | undefined }) =>
  pagesOf(['backfills', filter], (cursor) =>
    take(api.GET('/api/v1/backfills', { params: { query: { ...filter, limit: PAGE, cursor } } })),
  )

export const backfill = (id: number) =>
  queryOptions({
    queryKey: ['backfills', 'one', id],
    queryFn: () => take(api.GET('/api/v1/backfills/{backfill_id}', { params: { path: { backfill_id: id } } })),
  })

/** What an attempt was given. */
export const rendered = (id: number) =>
  queryOptions({
    queryKey: ['task', id, 'rendered'],
    queryFn: () => take(api.GET('/api/v1/task-instances/{task_instance_id}/rendered', { params: { path: { task_instance_id: id } } })),
  })

/** What the work of running tasks says of itself. */
export const progress = (run: number, isRunning: boolean) =>
  queryOptions({
    queryKey: ['instance', run, 'progress'],
    queryFn: () => take(api.GET('/api/v1/instances/{instance_id}/progress', { params: { path: { instance_id: run } } })),
    refetchInterval: isRunning ? 3000 : false, // no event tells of it
  })
