/** The graph of a workflow or of one of its runs, as people have arranged it. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo, type ComponentProps } from 'react'
import { Graph } from '@/graph/Graph'
import { folded, groupsFrom, NO_GROUPS } from '@/graph/groups'
import { Loading } from '@/shared/ui/parts'
import { layout } from './queries'

interface Props extends Omit<ComponentProps<typeof Graph>, 'places' | 'groups' | 'onFold'> {
  project: string
  workflow: string
}

/**
 * Groups are folded as the workflow's layout says, until somebody who looks unfolds one: that is a
 * view like any other, stands in the address, and changes nothing for others.
 */
export function WorkflowGraph({ project, workflow, ...props }: Props) {
  const { data, isPending } = useQuery(layout(project, workflow))
  const navigate = useNavigate()
  const fold = useSearch({ strict: false, select: (search: { fold?: string | undefined }) => search.fold })
  const groups = useMemo(() => {
    const all = data ? groupsFrom(data) : NO_GROUPS
    const names = Object.keys(all)
    if (!names.length) return NO_GROUPS
    if (fold === undefined) return all
    const wanted = new Set(fold.split(','))
    return folded(folded(all, names, false), names.filter((name) => wanted.has(name)), true)
  }, [data, fold])
  const onFold = useCallback(
    (names: readonly string[], isFolded: boolean) => {
      const now = folded(groups, names, isFolded)
      const next = Object.keys(now).filter((name) => now[name]?.isFolded).join(',')
      void navigate({ to: '.', search: (old: object) => ({ ...old, fold: next }), replace: true })
    },
    [groups, navigate],
  )
  // Nothing moves under the pointer: the picture waits for the places. Without them tasks are arranged.
  return isPending ? <Loading /> : <Graph {...props} groups={groups} onFold={onFold} {...(data ? { places: data.places } : {})} />
}
