/** What the pages of alerts ask for. Events tell when it is old: see `live/apply`. */
import { queryOptions } from '@tanstack/react-query'
import { api, onlyIf, take, takeTagged, type Tagged } from '@/api/client'
import type { Alert, AlertChannel, AlertChannelIn, AlertDelivery, AlertExplanation, AlertReceiver, AlertReceiverIn, AlertRule, AlertRuleIn } from '@/api/types'
import { pagesOf, type Page } from '@/entities/lists'

const LIMIT = 100
const MOST = 200 // of one request: definitions of a project

export const keyOf = (project: string, ...what: readonly unknown[]) => ['alerts', project, ...what] as const
const at = (project: string, cursor: string | undefined) => ({ params: { path: { project }, query: { limit: MOST, cursor } } })

export interface AlertFilter {
  state: readonly Alert['state'][]
  workflow: string | undefined
}

export const alerts = (project: string, { state, workflow }: AlertFilter) =>
  pagesOf<Alert>(keyOf(project, 'history', state, workflow), (cursor) =>
    take(api.GET('/api/v1/projects/{project}/alerts', { params: { path: { project }, query: { state: [...state], workflow, limit: LIMIT, cursor } } })),
  )

export const alert = (project: string, id: number) =>
  queryOptions({
    queryKey: keyOf(project, 'one', id),
    queryFn: () => take(api.GET('/api/v1/projects/{project}/alerts/{alert_id}', { params: { path: { project, alert_id: id } } })),
  })

export function acknowledge(project: string, id: number) {
  return take(api.POST('/api/v1/projects/{project}/alerts/{alert_id}/acknowledgement', { params: { path: { project, alert_id: id } } }))
}

export interface DeliveryFilter {
  state: readonly AlertDelivery['state'][]
  channel: string | undefined
}

export const deliveries = (project: string, { state, channel }: DeliveryFilter) =>
  pagesOf<AlertDelivery>(keyOf(project, 'deliveries', state, channel), (cursor) =>
    take(api.GET('/api/v1/projects/{project}/alert-deliveries', { params: { path: { project }, query: { state: [...state], channel, limit: LIMIT, cursor } } })),
  )

/** A message with its tries. */
export const delivery = (project: string, id: number) =>
  queryOptions({
    queryKey: keyOf(project, 'delivery', id),
    queryFn: () => take(api.GET('/api/v1/projects/{project}/alert-deliveries/{delivery_id}', { params: { path: { project, delivery_id: id } } })),
  })

/** What the rules made of what happened in a run. */
export const explanations = (project: string, run: number) =>
  pagesOf<AlertExplanation>(keyOf(project, 'why', run), (cursor) =>
    take(api.GET('/api/v1/projects/{project}/alert-explanations', { params: { path: { project }, query: { instance_id: run, limit: LIMIT, cursor } } })),
  )

export const silences = (project: string) => pagesOf(keyOf(project, 'silences'), (cursor) => take(api.GET('/api/v1/projects/{project}/alert-silences', at(project, cursor))))

export function endSilence(project: string, id: number) {
  return take(api.DELETE('/api/v1/projects/{project}/alert-silences/{silence_id}', { params: { path: { project, silence_id: id } } }))
}

/** How definitions of one sort are asked for and stored. */
export interface Definitions<Row, Body> {
  list: (project: string) => ReturnType<typeof pagesOf<Row>>
  load: (project: string, name: string) => Promise<Tagged<Row>>
  save: (project: string, name: string, body: Body, etag: string | undefined) => Promise<unknown>
  remove: (project: string, name: string) => Promise<unknown>
}

/** Deletes what it has just read: nobody else's change goes unseen. */
function removing<Row>(load: (project: string, name: string) => Promise<Tagged<Row>>, remove: (project: string, name: string, etag: string) => Promise<unknown>) {
  return async (project: string, name: string) => remove(project, name, (await load(project, name)).etag)
}

const one = (project: string, name: string) => ({ params: { path: { project, name } } })
const change = (project: string, name: string, etag: string | undefined) => ({ params: { path: { project, name }, header: onlyIf(etag) } })
const listing = <Row>(what: string, ask: (project: string, cursor: string | undefined) => Promise<Page<Row>>) => (project: string) => pagesOf<Row>(keyOf(project, what), (cursor) => ask(project, cursor))

const loadRule = (project: string, name: string) => takeTagged(api.GET('/api/v1/projects/{project}/alert-rules/{name}', one(project, name)))
export const rules: Definitions<AlertRule, AlertRuleIn> = {
  list: listing('rules', (project, cursor) => take(api.GET('/api/v1/projects/{project}/alert-rules', at(project, cursor)))),
  load: loadRule,
  save: (project, name, body, etag) => take(api.PUT('/api/v1/projects/{project}/alert-rules/{name}', { ...change(project, name, etag), body })),
  remove: removing(loadRule, (project, name, etag) => take(api.DELETE('/api/v1/projects/{project}/alert-rules/{name}', change(project, name, etag)))),
}

const loadReceiver = (project: string, name: string) => takeTagged(api.GET('/api/v1/projects/{project}/alert-receivers/{name}', one(project, name)))
export const receivers: Definitions<AlertReceiver, AlertReceiverIn> = {
  list: listing('receivers', (project, cursor) => take(api.GET('/api/v1/projects/{project}/alert-receivers', at(project, cursor)))),
  load: loadReceiver,
  save: (project, name, body, etag) => take(api.PUT('/api/v1/projects/{project}/alert-receivers/{name}', { ...change(project, name, etag), body })),
  remove: removing(loadReceiver, (project, name, etag) => take(api.DELETE('/api/v1/projects/{project}/alert-receivers/{name}', change(project, name, etag)))),
}

const loadChannel = (project: string, name: string) => takeTagged(api.GET('/api/v1/projects/{project}/alert-channels/{name}', one(project, name)))
export const channels: Definitions<AlertChannel, AlertChannelIn> = {
  list: listing('channels', (project, cursor) => take(api.GET('/api/v1/projects/{project}/alert-channels', at(project, cursor)))),
  load: loadChannel,
  save: (project, name, body, etag) => take(api.PUT('/api/v1/projects/{project}/alert-channels/{name}', { ...change(project, name, etag), body })),
  remove: removing(loadChannel, (project, name, etag) => take(api.DELETE('/api/v1/projects/{project}/alert-channels/{name}', change(project, name, etag)))),
}

export const channelKinds = queryOptions({
  queryKey: ['alert-channel-kinds'],
  queryFn: () => take(api.GET('/api/v1/alert-channel-kinds', { params: { query: { limit: MOST } } })),
  staleTime: Infinity,
})

export const secretNames = (project: string) =>
  queryOptions({
    queryKey: keyOf(project, 'secrets'),
    queryFn: async () => (await take(api.GET('/api/v1/projects/{project}/secrets', at(project, undefined)))).items.map((secret) => secret.name),
  })

export const workflowNames = (project: string) =>
  queryOptions({
    queryKey: keyOf(project, 'workflows'),
    queryFn: async () => (await take(api.GET('/api/v1/workflows', { params: { query: { project, limit: MOST, runs: 0 } } }))).items.map((workflow) => workflow.name),
  })
