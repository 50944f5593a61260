/** The names that forms and completion offer. What a person may not see is not offered. */
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Reference } from '@/shared/schema-form/schema'
import { namesIn, resourcesIn, sourcesIn } from './queries'

export interface ProjectNames {
  parameters: readonly string[]
  secrets: readonly string[]
  optionsOf: (ref: Reference) => readonly string[] | undefined
}

const NONE: readonly string[] = []

export function useNames(project: string): ProjectNames {
  const queries = namesIn(project)
  const groups = useQuery(queries.groups).data
  const calendars = useQuery(queries.calendars).data
  const environments = useQuery(queries.environments).data
  const workers = useQuery(queries.workers).data
  const parameters = useQuery(queries.parameters).data ?? NONE
  const secrets = useQuery(queries.secrets).data ?? NONE
  const sources = useQuery(sourcesIn(project)).data
  const resources = useQuery(resourcesIn(project)).data
  return useMemo(() => {
    const optionsOf = ({ to, kinds }: Reference): readonly string[] | undefined => {
      switch (to) {
        case 'data-source':
          return sources?.filter((one) => !kinds || kinds.includes(one.kind)).map((one) => one.name) ?? NONE
        case 'resource':
          return resources ?? NONE
        case 'worker-group':
          return [...new Set(['default', ...(workers ?? [])])]
        case 'environment':
          return [...(environments ?? []), 'none']
        case 'concurrency-group':
          return groups ?? NONE
        case 'calendar':
          return calendars ?? NONE
        case 'zone':
          return Intl.supportedValuesOf('timeZone')
        default:
          return undefined
      }
    }
    return { parameters, secrets, optionsOf }
  }, [groups, calendars, environments, workers, parameters, secrets, sources, resources])
}
