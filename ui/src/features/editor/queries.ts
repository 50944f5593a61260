/** What an editor asks the API. */
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { stringify } from 'yaml'
import { api, ApiProblem, take, takeTagged, type Tagged } from '@/api/client'
import { isSentAgainIfRefusedForNow } from '@/api/retries'
import type { Layout } from '@/api/types'

const PAGE = 200
const pathOf = (project: string, name: string) => ({ path: { project, name } })

/** The caller's own draft with its ETag; null: there is none. */
export async function loadDraft(project: string, name: string) {
  try {
    return await takeTagged(api.GET('/api/v1/projects/{project}/workflows/{name}/draft', { params: pathOf(project, name) }))
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return null
    throw error
  }
}

/** Saves a draft; `tag`: its ETag, null if there is none yet. Throws ApiProblem 412 with `current`. */
export function saveDraft(project: string, name: string, text: string, base: number, tag: string | null) {
  const header = tag === null ? { 'if-none-match': '*' } : { 'if-match': tag }
  return takeTagged(api.PUT('/api/v1/projects/{project}/workflows/{name}/draft', { params: { ...pathOf(project, name), header }, body: { text, base_version: base } }))
}

export function discardDraft(project: string, name: string, tag: string) {
  return take(api.DELETE('/api/v1/projects/{project}/workflows/{name}/draft', { params: { ...pathOf(project, name), header: { 'if-match': tag } } }))
}

export function publishDraft(project: string, name: string, tag: string) {
  return takeTagged(api.POST('/api/v1/projects/{project}/workflows/{name}/draft/publish', { params: { ...pathOf(project, name), header: { 'if-match': tag } } }))
}

/** Where tasks stand, with the layout's ETag; null: the workflow is not published. */
export async function loadLayout(project: string, name: string): Promise<Tagged<Layout> | null> {
  try {
    return await takeTagged(api.GET('/api/v1/projects/{project}/workflows/{name}/layout', { params: pathOf(project, name) }))
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return null
    throw error
  }
}

/** Stores where tasks stand. Throws ApiProblem 412 with `current`. */
export function saveLayout(project: string, name: string, layout: Pick<Layout, 'places' | 'groups' | 'folded'>, tag: string): Promise<Tagged<Layout>> {
  return takeTagged(api.PUT('/api/v1/projects/{project}/workflows/{name}/layout', { params: { ...pathOf(project, name), header: { 'if-match': tag } }, body: layout }))
}

/** The text of a version: as it was published, with its comments, or written anew. Version 0 is empty. */
export async function versionText(project: string, name: string, version: number): Promise<string> {
  if (version === 0) return ''
  const found = await take(api.GET('/api/v1/projects/{project}/workflows/{name}/versions/{version}', { params: { path: { project, name, version } } }))
  return found.source ?? stringify(found.definition, { lineWidth: 100 })
}

/** The newest version; null: the workflow has not been published. */
export const newestOf = (project: string, name: string) =>
  queryOptions({
    queryKey: ['workflows', 'newest', project, name],
    queryFn: async () => {
      try {
        return await take(api.GET('/api/v1/projects/{project}/workflows/{name}', { params: pathOf(project, name) }))
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 404) return null
        throw error
      }
    },
  })

export const problemsOf = (project: string, name: string, text: string) =>
  queryOptions({
    queryKey: ['validate', project, name, text],
    queryFn: () => take(api.POST('/api/v1/projects/{project}/workflows/{name}/validate', { params: pathOf(project, name), body: { text } })),
    staleTime: 60_000,
    gcTime: 60_000,
    retry: isSentAgainIfRefusedForNow,
  })

export const planOf = (project: string, name: string, text: string) =>
  queryOptions({
    queryKey: ['plan', project, name, text],
    queryFn: () => take(api.POST('/api/v1/projects/{project}/workflows/{name}/plan', { params: pathOf(project, name), body: { text } })),
    staleTime: 0,
    gcTime: 0,
    retry: isSentAgainIfRefusedForNow,
  })

export const taskTypes = queryOptions({
  queryKey: ['task-types'],
  queryFn: () => take(api.GET('/api/v1/task-types', { params: { query: { limit: PAGE } } })),
  staleTime: Infinity,
})

/** Others that have a draft of the workflow. */
export const draftsOf = (project: string, name: string) =>
  queryOptions({
    queryKey: ['workflows', 'drafts', project, name],
    queryFn: () => take(api.GET('/api/v1/projects/{project}/drafts', { params: { path: { project }, query: { name } } })),
  })

const named = (kind: string, project: string, asked: () => Promise<{ items: { name: string }[] }>) =>
  queryOptions({
    queryKey: ["names", kind, project],
    queryFn: async () => (await asked()).items.map((one) => one.name), staleTime: 60_000 })

/** The names of what definitions of a project may name. */
export const namesIn = (project: string) => {
  const params = { path: { project }, query: { limit: PAGE } }
  return {
    groups: named('groups', project, () => take(api.GET('/api/v1/projects/{project}/concurrency-groups', { params }))),
    calendars: named('calendars', project, () => take(api.GET('/api/v1/projects/{project}/calendars', { params }))),
    parameters: named('parameters', project, () => take(api.GET('/api/v1/projects/{project}/parameters', { params }))),
    secrets: named('secrets', project, () => take(api.GET('/api/v1/projects/{project}/secrets', { params }))),
    environments: named('environments', '', () => take(api.GET('/api/v1/environments', { params: { query: { limit: PAGE } } }))),
    workers: named('workers', '', async () => ({ items: (await take(api.GET('/api/v1/worker-groups', { params: { query: { limit: PAGE } } }))).items.map((one) => ({ name: one.group })) })),
    workflows: named('workflows', project, () => take(api.GET('/api/v1/workflows', { params: { query: { project, limit: PAGE } } }))),
  }
}

export const sourcesIn = (project: string) =>
  queryOptions({
    queryKey: ['names', 'sources', project],
    queryFn: async () => (await take(api.GET('/api/v1/projects/{project}/data-sources', { params: { path: { project }, query: { limit: PAGE } } }))).items.map(({ name, kind }) => ({ name, kind: String(kind) })),
    staleTime: 60_000,
  })

export const resourcesIn = (project: string) =>
  queryOptions({
    queryKey: ['names', 'resources', project],
    queryFn: async () => (await take(api.GET('/api/v1/projects/{project}/resources', { params: { path: { project }, query: { limit: PAGE } } }))).items.map((one) => one.path),
    staleTime: 60_000,
  })

export interface PreviewAsked {
  cron: string
  timezone: string
  on_gap?: 'shift' | 'skip' | null
  on_overlap?: 'first' | 'last' | 'both' | null
  start?: string | null
  end?: string | null
  exclude?: string[]
  calendar?: string | null
}

/** When a schedule would fire, whether or not it is published. */
export const firesOf = (project: string, asked: PreviewAsked, n: number) =>
  queryOptions({
    queryKey: ['schedules', 'would', project, asked, n],
    queryFn: () => take(api.POST('/api/v1/schedules/preview', { body: { exclude: [], ...asked, project, n } })),
    retry: isSentAgainIfRefusedForNow,
    staleTime: 60_000,
  })

/** What a task of the newest version would get for a logical time (an instant). */
/** What a task of a draft, or (no text) of the published version, would get for a date; null: it is not there. */
export const renderedOf = (project: string, workflow: string, text: string | null, task: string, instant: string) =>
  queryOptions({
    queryKey: ['workflows', 'rendered', project, workflow, text, task, instant],
    queryFn: async () => {
      const found = await take(api.POST('/api/v1/start-previews', { body: { project, workflow, text, logical_time: instant, render: [task], parameters: {}, labels: {} } }))
      return found.tasks.find((one) => one.task === task)?.rendered ?? null
    },
    placeholderData: keepPreviousData,
    gcTime: 60_000,
    retry: isSentAgainIfRefusedForNow,
  })
