/** What differs between two versions of a definition: as a picture, by fields, and as text. */
import { Segmented } from 'antd'
import { useMemo, useState } from 'react'
import type { VersionComparison } from '@/api/types'
import { Graph, type PictureTask } from '@/graph/Graph'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/editor'

import './comparing.css'

interface Tasks {
  tasks?: unknown
}

type View = 'graph' | 'fields' | 'text'

/** `before` and `after`: the definitions; the picture has the tasks of both. */
export function Comparing({ comparison, before, after }: { comparison: VersionComparison; before: Tasks | null; after: Tasks | null }) {
  const t = useT()
  const [view, setView] = useState<View>('graph')
  return (
    <div className="comparing">
      <Segmented<View> value={view} onChange={setView} options={(['graph', 'fields', 'text'] as const).map((value) => ({ value, label: t(`diff.${value}`) }))} />
      {view === 'graph' ? <GraphDiff comparison={comparison} before={before} after={after} /> : null}
      {view === 'fields' ? <FieldDiff comparison={comparison} /> : null}
      {view === 'text' ? <TextDiff text={comparison.text} /> : null}
    </div>
  )
}

function tasksIn(definition: Tasks | null): Map<string, { type: string; dependsOn: readonly string[] }> {
  const list = Array.isArray(definition?.tasks) ? (definition.tasks as { name?: string; type?: string; depends_on?: string | string[] }[]) : []
  return new Map(list.map((one) => [one.name ?? '', { type: one.type ?? '', dependsOn: typeof one.depends_on === 'string' ? [one.depends_on] : (one.depends_on ?? []) }]))
}

function GraphDiff({ comparison, before, after }: { comparison: VersionComparison; before: Tasks | null; after: Tasks | null }) {
  const t = useT()
  const tasks = useMemo(() => {
    const [old, now] = [tasksIn(before), tasksIn(after)]
    const [added, removed] = [new Set(comparison.tasks_added), new Set(comparison.tasks_removed)]
    const changed = new Set(comparison.tasks_changed.map((one) => one.task))
    return [...new Set([...now.keys(), ...old.keys()])].map((name): PictureTask => {
      const change = added.has(name) ? 'added' : removed.has(name) ? 'removed' : changed.has(name) ? 'changed' : undefined
      const dependsOn = [...new Set([...(now.get(name)?.dependsOn ?? []), ...(old.get(name)?.dependsOn ?? [])])]
      return { name, type: (now.get(name) ?? old.get(name))?.type ?? '', dependsOn, state: null, ...(change ? { change, note: t(`diff.${change}`) } : {}) }
    })
  }, [comparison, before, after, t])
  const edges = useMemo(() => new Map([...comparison.edges_added.map((one): [string, string] => [`${one.source}→${one.target}`, 'added']), ...comparison.edges_removed.map((one): [string, string] => [`${one.source}→${one.target}`, 'removed'])]), [comparison])
  return (
    <>
      <div className="comparing-graph"><Graph tasks={tasks} edgeMarks={edges} /></div>
      <p className="dim small">{t('diff.counts', { added: comparison.tasks_added.length, removed: comparison.tasks_removed.length, changed: comparison.tasks_changed.length, edges: comparison.edges_added.length + comparison.edges_removed.length })}</p>
    </>
  )
}

interface Change {
  path: string
  op: string
  before?: unknown
  after?: unknown
}

function FieldDiff({ comparison }: { comparison: VersionComparison }) {
  const t = useT()
  const groups: [string, readonly Change[]][] = [
    [t('diff.workflow'), [...comparison.fields, ...comparison.parameters, ...comparison.schedules]],
    ...comparison.tasks_changed.map((one): [string, readonly Change[]] => [one.task, one.changes]),
  ]
  const filled = groups.filter(([, changes]) => changes.length)
  return (
    <div className="field-diff">
      {comparison.tasks_added.map((name) => <p key={`+${name}`} className="added"><strong className="mono">+ {name}</strong></p>)}
      {comparison.tasks_removed.map((name) => <p key={`-${name}`} className="removed"><strong className="mono">− {name}</strong></p>)}
      {filled.map(([title, changes]) => (
        <section key={title}>
          <h3 className="mono">{title}</h3>
          {changes.map((one) => (
            <div key={one.path} className="field-change">
              <code>{one.path}</code>
              {one.op === 'added' ? null : <del>{valueText(one.before)}</del>}
              {one.op === 'removed' ? null : <ins>{valueText(one.after)}</ins>}
            </div>
          ))}
        </section>
      ))}
      {filled.length + comparison.tasks_added.length + comparison.tasks_removed.length ? null : <p className="dim">{t('diff.same')}</p>}
    </div>
  )
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A unified diff, its lines coloured and told apart by their first character. */
export function TextDiff({ text }: { text: string | null }) {
  const t = useT()
  if (text === null) return <p className="dim">{t('diff.tooLong')}</p>
  if (!text.trim()) return <p className="dim">{t('diff.same')}</p>
  return (
    <pre className="text-diff" tabIndex={0}>
      {text.trimEnd().split('\n').map((line, at) => (
        <span key={at} className={/^(---|\+\+\+) /.test(line) ? 'file' : line.startsWith('@@') ? 'place' : line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : undefined}>{line}{'\n'}</span>
      ))}
    </pre>
  )
}
