/** The graph of a workflow or of one of its runs, as people have arranged it. */
import { useQuery } from '@tanstack/react-query'
import type { ComponentProps } from 'react'
import { Graph } from '@/graph/Graph'
import { Loading } from '@/shared/ui/parts'
import { layout } from './queries'

interface Props extends Omit<ComponentProps<typeof Graph>, 'places'> {
  project: string
  workflow: string
}

export function WorkflowGraph({ project, workflow, ...props }: Props) {
  const { data, isPending } = useQuery(layout(project, workflow))
  // Nothing moves under the pointer: the picture waits for the places. Without them tasks are arranged.
  return isPending ? <Loading /> : <Graph {...props} {...(data ? { places: data.places } : {})} />
}
