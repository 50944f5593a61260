/** What is chosen, as a form: a task, several tasks, or the workflow itself. */
import { ApiOutlined, DeleteOutlined, GroupOutlined } from '@ant-design/icons'
import { Button, Segmented, Select } from 'antd'
import { useMemo, useState, type ReactNode } from 'react'
import { parse as readYaml, stringify } from 'yaml'
import { TASK_FIELDS, WORKFLOW_FIELDS, WORKFLOW_ORDER } from '@/definition/fields'
import { isPlain, type TaskModel } from '@/definition/parse'
import { set, unset } from '@/definition/patch'
import { secretsOf, withSecrets } from '@/definition/secrets'
import { closesCircle, connect, disconnect, NAME, removeTasks, rename, setField, taskNamed } from '@/definition/tasks'
import { withRenamed } from '@/graph/groups'
import { CodeEditor } from '@/shared/code/CodeEditor'
import { useT } from '@/shared/i18n'
import { BufferedInput } from '@/shared/schema-form/BufferedInput'
import { propertiesOf, translated, type Schema } from '@/shared/schema-form/schema'
import { SchemaForm, type FormContext, type FormPath } from '@/shared/schema-form/SchemaForm'
import { Empty } from '@/shared/ui/parts'
import { values } from '../completion'
import { problemAt, type Trouble } from '../problems'
import type { Session, SessionState } from '../session'
import { scriptLanguage, starterOf } from '../types'
import { useFieldTexts, useTranslated } from '@/shared/i18n/useFieldTexts'
import type { ProjectNames } from '../useNames'
import { Rendered } from './Rendered'

interface Props {
  session: Session
  state: SessionState
  selected: readonly string[]
  onSelect: (names: readonly string[]) => void
  onConnect: () => void
  onGroup: () => void
  troubles: readonly Trouble[]
  types: ReadonlyMap<string, Schema>
  names: ProjectNames
  version: number
  onTell: (error: unknown) => void
}

export function Inspector(props: Props) {
  const { state, selected } = props
  const tasks = selected.flatMap((name) => taskNamed(state.good, name) ?? [])
  const [only] = tasks
  return (
    <aside className="inspector editor-side" aria-label={only?.name ?? props.session.name}>
      {tasks.length > 1 ? <Several {...props} tasks={tasks} /> : only ? <OneTask key={only.index} {...props} task={only} /> : <WorkflowForm {...props} />}
    </aside>
  )
}

/** What forms need, with all changes going to the text at `base`. */
function useForm({ session, state, troubles, names, onTell }: Props, base: FormPath, change: (path: FormPath, value: unknown) => void, type: string): FormContext {
  const { refusal, parsed } = state
  const isDisabled = refusal !== null || parsed.mistakes.length > 0
  const { onUndo, onRedo } = useMemo(() => ({ onUndo: () => session.undo(), onRedo: () => session.redo() }), [session])
  return {
    isDisabled,
    onChange: (path, value) => {
      try {
        change(path, value)
      } catch (error) {
        onTell(error)
      }
    },
    problemAt: (path) => problemAt(troubles, [...base, ...path]),
    optionsOf: names.optionsOf,
    script: ({ value, label, onChange }): ReactNode => (
      <CodeEditor isSmall value={value} label={label} language={scriptLanguage(type)} readOnly={isDisabled} onChange={onChange} onUndo={onUndo} onRedo={onRedo} complete={(context) => values({ types: new Map(), parsed: state.good, parameters: names.parameters, secrets: names.secrets }, context)} />
    ),
    writeAny: (value) => stringify(value, { lineWidth: 60 }).trimEnd(),
    readAny: (text) => readYaml(text) as unknown,
  }
}

const MOST_NAMED = 30 // of the tasks that are chosen
const USUAL_OF_WORKFLOWS = ['description', 'timezone', 'parameters', 'overlap', 'timeout']
const USUAL = ['description', 'run_when', 'retries', 'timeout']

function OneTask(props: Props & { task: TaskModel }) {
  const t = useT()
  const { session, state, task, onSelect, troubles, types, version, onTell } = props
  const [tab, setTab] = useState<'form' | 'rendered'>('form')
  const schema = types.get(task.type)
  const params = isPlain(task.value.params) ? task.value.params : {}
  const base: FormPath = ['tasks', task.index]
  const attempt = (act: () => void): void => {
    try {
      act()
    } catch (error) {
      onTell(error)
    }
  }
  const put = (path: FormPath, value: unknown): void => void session.change('edit.field', (parsed) => setField(parsed, task.name, path, value), { group: `${task.name}.${path.join('.')}` })
  const form = useForm(props, [...base, 'params'], (path, value) => put(['params', ...path], value), task.type)
  const settings = useForm(props, base, put, task.type)
  const texts = useFieldTexts()
  const properties = useMemo(() => (schema ? propertiesOf(translated(schema, texts)) : []), [schema, texts])
  const own = useTranslated(TASK_FIELDS)
  const isFrozen = form.isDisabled
  const renameTo = (next: string): void =>
    attempt(() => {
      session.change('edit.rename', (parsed) => rename(parsed, task.name, next), {
        places: ({ [task.name]: at, ...others }) => (at ? { ...others, [next]: at } : others),
        groups: (groups) => withRenamed(groups, new Map([[task.name, next]])),
      })
      onSelect([next])
    })
  const nameMistake = (next: string): string | null => (!NAME.test(next) ? t('task.badName') : next !== task.name && taskNamed(state.good, next) ? t('task.taken') : null)
  const direct = troubles.filter((one) => one.key === base.join('.') || one.key === [...base, 'params'].join('.'))
  const upstream = state.good.tasks.filter((one) => one.name !== task.name && (task.dependsOn.includes(one.name) || !closesCircle(state.good.tasks, one.name, task.name)))
  return (
    <>
      <div className="editor-side-head">
        <Segmented<'form' | 'rendered'> size="small" value={tab} onChange={setTab} options={[{ value: 'form', label: t('inspector.form') }, { value: 'rendered', label: t('inspector.rendered') }]} />
        <span className="grow" />
        <Button size="small" type="text" icon={<ApiOutlined />} disabled={isFrozen} aria-label={t('connect.open')} title={`${t('connect.open')} (c)`} onClick={props.onConnect} />
        <Button size="small" type="text" icon={<DeleteOutlined />} disabled={isFrozen} aria-label={t('task.remove')} title={t('task.remove')} onClick={() => attempt(() => (session.change('edit.remove', (parsed) => removeTasks(parsed, [task.name])), onSelect([])))} />
      </div>
      {tab === 'rendered' ? (
        <Rendered project={session.project} workflow={session.name} text={state.refusal === null ? state.text : null} version={version} task={task.name} zone={typeof state.good.value?.timezone === 'string' ? state.good.value.timezone : 'UTC'} />
      ) : (
        <>
          {direct.map((one, at) => <p key={at} className="form-problem" role="alert">{one.message}</p>)}
          <div className="form-fields">
            <label className="form-field"><span className="form-label">{t('task.name')}</span><BufferedInput isLate value={task.name} isDisabled={isFrozen} mistakeOf={nameMistake} onCommit={renameTo} /></label>
            <div className="form-field">
              <span className="form-label">{t('task.type')}</span>
              <Select size="small" showSearch className="full" aria-label={t('task.type')} disabled={isFrozen} value={task.type || null} options={[...types.keys()].map((value) => ({ value, label: value }))} onChange={(next: string | null) => {
                if (!next) return
                attempt(() => session.change('edit.type', (parsed) => {
                  const now = setField(parsed, task.name, ['type'], next)
                  // Params that the new type does not know go; what it needs comes.
                  const known = types.get(next)?.properties ?? {}
                  const kept = Object.fromEntries(Object.entries(params).filter(([key]) => key in known))
                  const wanted = { ...starterOf(next, types.get(next)), ...kept }
                  return setField(now, task.name, ['params'], Object.keys(wanted).length ? wanted : undefined)
                }))
              }} />
              {problemAt(troubles, [...base, 'type']) ? <p className="form-problem" role="alert">{problemAt(troubles, [...base, 'type'])}</p> : null}
            </div>
            <div className="form-field">
              <span className="form-label">{t('workflow.dependsOn')}</span>
              <Select size="small" mode="multiple" className="full" aria-label={t('workflow.dependsOn')} disabled={isFrozen} value={[...task.dependsOn]} placeholder={t('task.first')} options={upstream.map((one) => ({ value: one.name, label: one.name }))} onChange={(next: string[]) => attempt(() => session.change('edit.connect', (parsed) => {
                const gone = task.dependsOn.filter((name) => !next.includes(name)).reduce((now, name) => disconnect(now, name, task.name), parsed)
                return next.filter((name) => !task.dependsOn.includes(name)).reduce((now, name) => connect(now, name, task.name), gone)
              }))} />
              {problemAt(troubles, [...base, 'depends_on']) ? <p className="form-problem" role="alert">{problemAt(troubles, [...base, 'depends_on'])}</p> : null}
            </div>
          </div>
          {properties.length ? <h3 className="editor-section">{t('inspector.params', { type: task.type })}</h3> : null}
          <SchemaForm key={task.type} {...form} properties={properties} value={params} first={properties.filter((one) => one.field.kind === 'script').map((one) => one.name).slice(0, 1)} />
          <h3 className="editor-section">{t('inspector.settings')}</h3>
          <div className="form-field" data-field="secrets">
            <span className="form-label">{t('task.secrets')}</span>
            <Select size="small" mode="multiple" className="full" aria-label={t('task.secrets')} disabled={isFrozen} value={Object.values(secretsOf(task.value.parameters))} placeholder={t('task.secrets.none')} options={props.names.secrets.map((value) => ({ value, label: value }))} onChange={(next: string[]) => put(['parameters'], withSecrets(task.value.parameters, next))} />
            <p className="form-help">{t('task.secrets.help')}</p>
          </div>
          <SchemaForm {...settings} properties={own} value={without(task.value, ['name', 'type', 'depends_on', 'params'])} first={USUAL} />
        </>
      )}
    </>
  )
}

function without(value: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name) && !name.startsWith('x-')))
}

function Several({ session, state, tasks, onSelect, onConnect, onGroup, onTell }: Props & { tasks: readonly TaskModel[] }) {
  const t = useT()
  const isFrozen = state.refusal !== null || state.parsed.mistakes.length > 0
  const names = tasks.map((task) => task.name)
  const attempt = (act: () => void): void => {
    try {
      act()
    } catch (error) {
      onTell(error)
    }
  }
  const enable = (value: false | undefined) => (): void => attempt(() => session.change('edit.field', (parsed) => names.reduce((now, name) => setField(now, name, ['enabled'], value), parsed)))
  return (
    <>
      <h2>{t('inspector.several', { count: tasks.length })}</h2>
      <p className="dim wrap-any">{names.slice(0, MOST_NAMED).join(', ')}{names.length > MOST_NAMED ? ' …' : ''}</p>
      <div className="stack">
        <Button disabled={isFrozen} icon={<ApiOutlined />} onClick={onConnect}>{t('connect.open')}</Button>
        <Button disabled={state.refusal !== null} icon={<GroupOutlined />} onClick={onGroup}>{t('group.new')}</Button>
        <Button disabled={isFrozen} onClick={enable(false)}>{t('task.disable')}</Button>
        <Button disabled={isFrozen} onClick={enable(undefined)}>{t('task.enable')}</Button>
        <Button danger disabled={isFrozen} icon={<DeleteOutlined />} onClick={() => attempt(() => (session.change('edit.remove', (parsed) => removeTasks(parsed, names)), onSelect([])))}>{t('task.removeAll', { count: tasks.length })}</Button>
      </div>
      <p className="dim small">{t('inspector.clipboard')}</p>
    </>
  )
}

/** How the workflow as a whole behaves. `every`: all fields, not only those that are set or usual. */
export function WorkflowForm({ every = false, ...props }: Props & { every?: boolean }) {
  const t = useT()
  const { session, state } = props
  const put = (path: FormPath, value: unknown): void => void session.change('edit.field', (parsed) => (value === undefined ? unset(parsed, path) : set(parsed, path, value, WORKFLOW_ORDER)), { group: path.join('.') })
  const form = useForm(props, [], put, '')
  const own = useTranslated(WORKFLOW_FIELDS)
  if (!state.good.value && state.parsed.mistakes.length) return <Empty title={t('inspector.unreadable')} />
  return (
    <>
      <h2>{t('inspector.workflow')}</h2>
      {every ? null : <p className="dim small">{t('inspector.choose')}</p>}
      <SchemaForm {...form} properties={own} value={without(state.good.value ?? {}, ['project', 'name', 'tasks', 'schedules'])} first={every ? own.map((one) => one.name) : USUAL_OF_WORKFLOWS} />
    </>
  )
}
