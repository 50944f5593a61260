/** How one looks at Insight: what the address says, and what that means for the API. Pure. */
import type { CostBy, InsightSort } from '@/api/types'
import { windowOf, type Preset, type Window } from './days'
import type { Scope } from './queries'

export const TABS = ['overview', 'slower', 'waits', 'failures', 'lateness', 'load', 'cost', 'schedules'] as const
export type InsightTab = (typeof TABS)[number]
export const SORTS = ['slower', 'waits', 'failures', 'late', 'cost'] as const
export const MEASURES = ['needed_max', 'running_mean', 'running_max', 'waiting_max'] as const
export type Measure = (typeof MEASURES)[number]
export const COSTS = ['project', 'workflow', 'task', 'label'] as const

export interface InsightSearch {
  /** To be changed to; what it is, the pages are told beside the rest. */
  project?: string | undefined
  tab?: InsightTab | undefined
  days?: Preset | undefined
  from?: string | undefined
  to?: string | undefined
  /** One workflow, as PROJECT/NAME; it counts more than the project. */
  workflow?: string | undefined
  sort?: InsightSort | undefined
  by?: CostBy | undefined
  measure?: Measure | undefined
  /** The worker group whose hours are shown. */
  group?: string | undefined
  /** The failure whose attempts are listed. */
  cause?: string | undefined
}

export interface View {
  scope: Scope
  window: Window
  /** The workflow that is looked at alone. */
  one: { project: string; name: string } | null
}

/** What the tabs get. */
export interface TabProps {
  view: View
  search: InsightSearch
  onSearch: (to: InsightSearch) => void
}

export function viewOf(project: string | undefined, search: InsightSearch, until: string): View {
  const window = windowOf(search, until)
  const [first = '', name = ''] = (search.workflow ?? '').split('/')
  const one = first && name ? { project: first, name } : null
  const scope = { project: one?.project ?? project, workflow: one?.name, from: window.from, to: window.to }
  return { scope, window, one }
}
