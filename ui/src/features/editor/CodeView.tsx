/** The text itself, with marks where the server finds something wrong. */
import { useMemo, useRef } from 'react'
import { pathAt } from '@/definition/parse'
import { CodeEditor, type Mark } from '@/shared/code/CodeEditor'
import { useT } from '@/shared/i18n'
import type { Schema } from '@/shared/schema-form/schema'
import { yamlCompletion } from './completion'
import type { Trouble } from './problems'
import type { Session, SessionState } from './session'
import type { ProjectNames } from './useNames'

interface Props {
  session: Session
  state: SessionState
  troubles: readonly Trouble[]
  types: ReadonlyMap<string, Schema>
  names: ProjectNames
  goTo: { line: number } | undefined
  onTask: (name: string) => void
}

export function CodeView({ session, state, troubles, types, names, goTo, onTask }: Props) {
  const t = useT()
  const known = useRef({ types, parsed: state.good, parameters: names.parameters, secrets: names.secrets })
  known.current = { types, parsed: state.good, parameters: names.parameters, secrets: names.secrets }
  const complete = useMemo(() => yamlCompletion(() => known.current), [])
  const marks = useMemo((): Mark[] => {
    const found = troubles.flatMap((one): Mark[] => (one.line === null ? [] : [{ line: one.line, message: one.message }]))
    // What the browser cannot read is marked before the server has said so.
    return found.length ? found : state.parsed.mistakes.map(({ line, message }) => ({ line, message }))
  }, [troubles, state.parsed])
  return (
    <div className="code-frame">
      <CodeEditor
        value={state.text}
        language="yaml"
        label={t('edit.code')}
        readOnly={state.refusal !== null}
        marks={marks}
        complete={complete}
        goTo={goTo}
        onChange={(text) => session.type(text)}
        onUndo={() => session.undo()}
        onRedo={() => session.redo()}
        onCursor={(offset) => {
          if (state.parsed.text !== session.state.text || state.parsed.mistakes.length) return
          const [first, index] = pathAt(session.state.parsed, offset)
          const task = first === 'tasks' && typeof index === 'number' ? session.state.parsed.tasks.find((one) => one.index === index) : undefined
          if (task) onTask(task.name)
        }}
      />
    </div>
  )
}
