/** What the settings of a project ask for. */
import { queryOptions } from '@tanstack/react-query'
import { api, take, takeTagged } from '@/api/client'
import { pagesOf } from '@/entities/lists'

const LIMIT = 200
const at = (project: string, cursor: string | undefined) => ({ params: { path: { project }, query: { limit: LIMIT, cursor } } })

export const keyOf = (project: string, what: string) => ['settings', project, what] as const

export const parameters = (project: string) => pagesOf(keyOf(project, 'parameters'), (cursor) => take(api.GET('/api/v1/projects/{project}/parameters', at(project, cursor))))
export const secrets = (project: string) => pagesOf(keyOf(project, 'secrets'), (cursor) => take(api.GET('/api/v1/projects/{project}/secrets', at(project, cursor))))
export const calendars = (project: string) => pagesOf(keyOf(project, 'calendars'), (cursor) => take(api.GET('/api/v1/projects/{project}/calendars', at(project, cursor))))
export const concurrencyGroups = (project: string) => pagesOf(keyOf(project, 'groups'), (cursor) => take(api.GET('/api/v1/projects/{project}/concurrency-groups', at(project, cursor))))
export const members = (project: string) => pagesOf(keyOf(project, 'members'), (cursor) => take(api.GET('/api/v1/projects/{project}/members', at(project, cursor))))
export const grants = (project: string) => pagesOf(keyOf(project, 'grants'), (cursor) => take(api.GET('/api/v1/projects/{project}/grants', at(project, cursor))))
export const accounts = (project: string) => pagesOf(keyOf(project, 'accounts'), (cursor) => take(api.GET('/api/v1/projects/{project}/service-accounts', at(project, cursor))))

export const concurrencyGroup = (project: string, name: string) =>
  queryOptions({
    queryKey: ['settings', project, 'groups', name],
    queryFn: () => take(api.GET('/api/v1/projects/{project}/concurrency-groups/{name}', { params: { path: { project, name } } })),
  })

export const projectNow = (project: string) =>
  queryOptions({
    queryKey: ['projects', 'one', project],
    queryFn: () => takeTagged(api.GET('/api/v1/projects/{project}', { params: { path: { project } } })),
  })
