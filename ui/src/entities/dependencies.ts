/** What waits for what, as a picture and as rows. Pure. */
import type { DependencyGraph, DependencyNode, DependencyRun } from '@/api/types'
import type { PictureTask } from '@/graph/Graph'

export interface Row extends DependencyNode {
  /** What it waits for; ids. A workflow may wait for itself, of another day. */
  waitsFor: string[]
  /** What it looks for by a date value: of which workflow, and the run where it is of another day than that one shows. */
  looks: { source: string; dates: string[]; other?: { since: string; run: DependencyRun | null } }[]
  isCritical: boolean
}

/** Returns the workflows in the order in which they can be done; what waits in a circle comes last. */
export function rowsOf(graph: DependencyGraph): Row[] {
  const critical = new Set(graph.critical)
  const waitsFor = new Map<string, string[]>(graph.nodes.map((node) => [node.id, []]))
  for (const edge of graph.edges) waitsFor.get(edge.target)?.push(edge.source)
  const windows = new Map(graph.nodes.map((node) => [node.id, node.since + node.until]))
  const looks = new Map<string, Row['looks']>(graph.nodes.map((node) => [node.id, []]))
  for (const edge of graph.edges) {
    const dates = [...new Set(edge.tasks.flatMap((task) => task.date ?? []))].sort()
    const isOther = edge.since + edge.until !== windows.get(edge.source)
    if (dates.length) looks.get(edge.target)?.push({ source: edge.source, dates, ...(isOther ? { other: { since: edge.since, run: edge.run } } : {}) })
  }
  const rest = new Map(graph.nodes.map((node) => [node.id, node]))
  const rows: Row[] = []
  const isReady = (id: string): boolean => (waitsFor.get(id) ?? []).every((source) => source === id || !rest.has(source))
  while (rest.size) {
    const ready = [...rest.values()].filter((node) => isReady(node.id))
    for (const node of ready.length ? ready : [...rest.values()]) {
      rest.delete(node.id)
      rows.push({ ...node, waitsFor: waitsFor.get(node.id) ?? [], looks: looks.get(node.id) ?? [], isCritical: critical.has(node.id) })
    }
  }
  return rows
}

/** Returns the boxes of the picture. Those of `home` go by their names alone. */
export function pictureOf(rows: readonly Row[], home: string, note: (row: Row) => string): PictureTask[] {
  return rows.map((row) => ({
    name: row.id,
    label: row.project === home ? row.workflow : row.id,
    type: note(row),
    dependsOn: row.waitsFor.filter((source) => source !== row.id),
    state: row.state,
  }))
}

/** Returns the date some days later. */
export function dayAfter(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)
}

/** Returns the day in a zone of a moment, such as the first that counts of a workflow. */
export function dayIn(iso: string, zone: string): string {
  return new Date(iso).toLocaleDateString('en-CA', { timeZone: zone })
}
