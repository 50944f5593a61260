/** The editor of a workflow: canvas, table, text and schedules are views of one draft. */
import { CloudUploadOutlined, PartitionOutlined, RedoOutlined, UndoOutlined } from '@ant-design/icons'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Alert, App, Button, Segmented } from 'antd'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { WorkflowDetail } from '@/api/types'
import { WORKFLOW_FIELDS } from '@/definition/fields'
import { isPlain, lineOf } from '@/definition/parse'
import { NotPatchable } from '@/definition/patch'
import { addTask, connect, freeName, taskNamed } from '@/definition/tasks'
import { Act, Trouble as Failure, useRefusal } from '@/entities/marks'
import { me as meOf } from '@/entities/queries'
import { GroupMenu } from '@/graph/GroupBoxes'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/editor'
import type { Schema } from '@/shared/schema-form/schema'
import { Loading, PageHead } from '@/shared/ui/parts'
import { Canvas } from './canvas/Canvas'
import { ConnectDialog } from './canvas/ConnectDialog'
import { useGrouping } from './canvas/grouping'
import { TypeList } from './canvas/TypeList'
import { CodeView } from './CodeView'
import { DraftState } from './DraftState'
import './editor.css'
import { Inspector, WorkflowForm } from './inspector/Inspector'
import { troublesOf, type Trouble } from './problems'
import { ConflictDialog } from './publish/ConflictDialog'
import { PublishDialog } from './publish/PublishDialog'
import { openPlaces, type KeptPlaces } from './places'
import { draftsOf, newestOf, problemsOf, taskTypes, versionText } from './queries'
import { open, Saving, useSaving, type Opened } from './saving'
import { SchedulesView } from './schedules/SchedulesView'
import { Session, useSession } from './session'
import { TableView } from './TableView'
import { starterOf } from './types'
import { useNames } from './useNames'

export type EditorView = 'canvas' | 'table' | 'code' | 'schedules' | 'settings'

interface Props {
  project: string
  name: string
  view: EditorView | undefined
  chosen: string | undefined
  /** Begin with the text of an old version. */
  restore: number | undefined
  onView: (to: { view?: EditorView | undefined; sel?: string | undefined; restore?: undefined }) => void
  onPublished: (version: number) => void
}

const VIEWS = ['canvas', 'table', 'code', 'schedules', 'settings'] as const
const SETTINGS: ReadonlySet<string> = new Set(WORKFLOW_FIELDS.map((one) => one.name))
const VALIDATE_MS = 500
const NOTHING: readonly string[] = []

const starter = (name: string): string => `name: ${name}\ntasks: []\n`

export function EditorPage(props: Props) {
  const { project, name } = props
  const who = useQuery(meOf).data?.name
  const refusal = useRefusal('project.edit', project)
  const newest = useQuery(newestOf(project, name))
  const [opened, setOpened] = useState<{ draft: Opened; places: KeptPlaces } | null>(null)
  const [error, setError] = useState<Error | null>(null)
  const version = newest.data === undefined ? undefined : (newest.data?.version ?? 0)
  const isReady = opened !== null
  useEffect(() => {
    if (version === undefined || who === undefined || isReady) return
    // Who may not edit has no draft, and reads what is published.
    const found = refusal === null ? open(who, project, name, version, starter(name)) : versionText(project, name, version).then((text): Opened => ({ text, savedText: text, baseVersion: version, tag: null, isRestored: false, clash: null }))
    Promise.all([found, openPlaces(project, name, refusal === null)]).then(([draft, places]) => setOpened({ draft, places }), (caught: unknown) => setError(caught instanceof Error ? caught : new Error(String(caught))))
  }, [who, project, name, version, refusal, isReady])
  const failure = error ?? newest.error
  if (failure) return <Failure error={failure} retry={() => location.reload()} />
  if (!opened || who === undefined || newest.data === undefined) return <Loading rows={12} />
  return <Editor {...props} who={who} opened={opened.draft} places={opened.places} newest={newest.data} refusal={refusal} />
}

function Editor({ project, name, view = 'canvas', chosen, restore, onView, onPublished, who, opened, places, newest, refusal }: Props & { who: string; opened: Opened; places: KeptPlaces; newest: WorkflowDetail | null; refusal: string | null }) {
  const t = useT()
  const { message, modal, notification } = App.useApp()
  const queries = useQueryClient()
  const [{ session, saving }] = useState(() => {
    const made: { session: Session; saving: Saving } = {
      saving: new Saving(who, project, name, opened, (text) => made.session.replace('edit.merged', text)),
      session: new Session(project, name, opened.text, refusal, places, (text) => made.saving.changed(text)),
    }
    places.onOthers = (moved) => made.session.takeLayout(moved)
    return made
  })
  const state = useSession(session)
  const info = useSaving(saving)
  useEffect(() => session.refuse(refusal), [session, refusal])
  useEffect(() => {
    const leave = (): void => {
      saving.stop()
      void places.flush().then(() => queries.invalidateQueries({ queryKey: ['layout', project, name] }))
    }
    addEventListener('pagehide', leave)
    return () => {
      removeEventListener('pagehide', leave)
      leave()
    }
  }, [saving, places, queries, project, name])

  const types = useQuery(taskTypes)
  const schemas = useMemo(() => new Map((types.data?.items ?? []).map((one): [string, Schema] => [one.name, one.params_schema])), [types.data])
  const names = useNames(project)
  const others = useQuery({ ...draftsOf(project, name), enabled: refusal === null })
  const [checked, setChecked] = useState(state.text)
  useEffect(() => {
    const timer = setTimeout(() => setChecked(state.text), VALIDATE_MS)
    return () => clearTimeout(timer)
  }, [state.text])
  const problems = useQuery({ ...problemsOf(project, name, checked), enabled: refusal === null && checked.trim() !== '' })
  const troubles = useMemo(() => (checked === state.text || problems.data ? troublesOf(problems.data?.problems ?? [], state.good) : []), [problems.data, checked, state.text, state.good])

  const [selected, setSelected] = useState<readonly string[]>(chosen ? [chosen] : NOTHING)
  const select = useCallback(
    (next: readonly string[]) => {
      setSelected(next)
      onView({ sel: next.length === 1 ? next[0] : undefined })
    },
    [onView],
  )
  const shown = useMemo(() => selected.filter((one) => taskNamed(state.good, one)), [selected, state.good])
  const grouping = useGrouping(session, state, shown)
  const [palette, setPalette] = useState<object | null>(null)
  const [fit, setFit] = useState<object>({})
  const [isConnecting, setConnecting] = useState(false)
  const [isPublishing, setPublishing] = useState(false)
  const [isDeciding, setDeciding] = useState(opened.clash !== null)
  const [goTo, setGoTo] = useState<{ line: number }>()
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (info.clash) setDeciding(true)
  }, [info.clash])
  useEffect(() => {
    if (opened.isRestored) void message.info(t('draft.restored'))
  }, [opened, message, t])
  useEffect(() => {
    if (restore === undefined || refusal !== null) return
    void versionText(project, name, restore).then((text) => {
      session.replace('edit.restored', text)
      onView({ restore: undefined })
      void message.success(t('draft.fromVersion', { version: restore }))
    })
  }, [restore, refusal, project, name, session, onView, message, t])

  const tell = useCallback(
    (error: unknown) => {
      if (error instanceof NotPatchable) notification.warning({ title: t('edit.notPatchable'), description: t('edit.notPatchable.detail', { place: error.message }) })
      else throw error
    },
    [notification, t],
  )
  const isFrozen = refusal !== null || state.parsed.mistakes.length > 0
  const add = (type: string, at?: { x: number; y: number }): void => {
    if (isFrozen) return
    try {
      const own = freeName(state.good.tasks.map((task) => task.name), type.toLowerCase())
      const params = starterOf(type, schemas.get(type))
      const before = shown.length === 1 && !at ? shown[0] : undefined
      session.change('edit.add', (parsed) => addTask(parsed, { name: own, type, ...(before ? { depends_on: [before] } : {}), ...(Object.keys(params).length ? { params } : {}) }), {
        places: (places) => (at ? { ...places, [own]: at } : places),
      })
      select([own])
    } catch (error) {
      tell(error)
    }
  }

  // Undo and redo are of the page, whichever view is open; fields keep their own while they are typed in.
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.defaultPrevented) return
      const key = event.key.toLowerCase()
      if (key === 's') {
        event.preventDefault()
        void saving.flush()
        return
      }
      if (event.target instanceof Element && event.target.closest('input, textarea, [contenteditable=true]')) return
      if (key !== 'z' && key !== 'y') return
      event.preventDefault()
      if (key === 'y' || event.shiftKey) session.redo()
      else session.undo()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [session, saving])

  const goToProblem = (one: Trouble): void => {
    if (one.task && view !== 'code') {
      select([one.task])
      return
    }
    const line = one.line ?? lineOf(state.parsed, one.key.split('.')) ?? 1
    onView({ view: view === 'code' ? 'code' : one.key.startsWith('schedules') ? 'schedules' : SETTINGS.has(one.key.split('.')[0] ?? '') ? 'settings' : 'code' })
    setGoTo({ line })
  }
  const publish = async (): Promise<void> => {
    const version = await saving.publish()
    if (version !== null) {
      setPublishing(false)
      await places.published()
      void message.success(t('publish.done', { version }))
      await queries.invalidateQueries({ queryKey: ['workflows'] })
      await queries.invalidateQueries({ queryKey: ['schedules'] })
      onPublished(version)
    } else if (saving.info.clash) {
      setPublishing(false)
    } else if (saving.info.state === 'saved') {
      void message.warning(t('publish.again'))
    } else {
      throw new Error(saving.info.problem || t('draft.offline'))
    }
  }
  const discard = (): void =>
    void modal.confirm({
      title: t('draft.discard.title'),
      content: t('draft.discard.detail'),
      okText: t('draft.discard'),
      okButtonProps: { danger: true },
      cancelText: t('common.cancel'),
      onOk: () => saving.discard(newest?.version ?? 0, starter(name)),
    })
  const takeIn = async (): Promise<void> => {
    if (!newest) return
    const taken = await saving.takeIn(newest.version)
    if (!saving.info.clash) void message.success(t('draft.takenIn', { count: taken.length }))
  }
  const isBehind = refusal === null && newest !== null && info.hasDraft && newest.version > info.baseVersion && !info.clash
  const editors = (others.data?.items ?? []).filter((one) => one.editor !== who).map((one) => one.editor)
  const published = isPlain(newest?.definition) ? newest.definition : null
  const canPublish = refusal === null && !info.clash && (info.hasDraft || info.state === 'waiting' || newest === null)

  const forms = { session, state, selected: shown, onSelect: select, onConnect: () => setConnecting(true), onGroup: () => void grouping.group(), troubles, types: schemas, names, version: newest?.version ?? 0, onTell: tell }
  return (
    <div className="page-fill editor" ref={frame}>
      <PageHead
        crumbs={<><Link to="/workflows" search={{ project }}>{project}</Link>{newest ? <><span>/</span><Link to="/projects/$project/workflows/$name" params={{ project, name }}>{name}</Link></> : null}</>}
        title={name}
        mark={<DraftState info={info} refusal={refusal} newest={newest?.version ?? 0} onDecide={() => setDeciding(true)} />}
      >
        {editors.length ? <span className="dim small">{t('draft.others', { names: editors.join(', ') })}</span> : null}
        <Button icon={<UndoOutlined />} disabled={!state.canUndo || refusal !== null} aria-label={t('edit.undo')} title={state.canUndo ? `${t('edit.undo')}: ${t(state.canUndo)} (Ctrl Z)` : t('edit.undo')} onClick={() => session.undo()} />
        <Button icon={<RedoOutlined />} disabled={!state.canRedo || refusal !== null} aria-label={t('edit.redo')} title={state.canRedo ? `${t('edit.redo')}: ${t(state.canRedo)} (Ctrl Shift Z)` : t('edit.redo')} onClick={() => session.redo()} />
        <Act refusal={refusal} {...(refusal === null ? { disabled: !info.hasDraft && info.state === 'published' } : {})} onClick={discard}>{t('draft.discard')}</Act>
        <Act refusal={refusal} type="primary" icon={<CloudUploadOutlined />} {...(refusal === null ? { disabled: !canPublish } : {})} onClick={() => setPublishing(true)}>{t('publish.open')}</Act>
      </PageHead>
      {refusal !== null ? <Alert type="info" showIcon title={t('edit.readOnly')} description={refusal} /> : null}
      {isBehind ? <Alert type="info" showIcon title={t('draft.appeared', { version: newest.version })} description={t('draft.appeared.detail', { base: info.baseVersion })} action={<span className="row"><Link to="/projects/$project/workflows/$name" params={{ project, name }} search={{ tab: 'versions' as const }}>{t('draft.seeChanges')}</Link><Button size="small" type="primary" onClick={() => void takeIn()}>{t('draft.takeIn')}</Button></span>} /> : null}
      {state.parsed.mistakes[0] && view !== 'code' ? <Alert type="warning" showIcon title={t('edit.unreadable', { line: state.parsed.mistakes[0].line })} description={state.parsed.mistakes[0].message} action={<Button size="small" onClick={() => (onView({ view: 'code' }), setGoTo({ line: state.parsed.mistakes[0]?.line ?? 1 }))}>{t('edit.goToCode')}</Button>} /> : null}
      <div className="editor-bar">
        <Segmented<EditorView> aria-label={t('edit.views')} value={view} onChange={(next) => onView({ view: next })} options={VIEWS.map((value) => ({ value, label: t(`edit.${value}`) }))} />
        <span className="grow" />
        {view === 'canvas' ? <GroupMenu groups={grouping.groups} names={grouping.names} onFold={grouping.fold} more={grouping.menu} /> : null}
        {view === 'canvas' ? <Button size="small" icon={<PartitionOutlined />} disabled={isFrozen} onClick={() => (session.arrange(), setFit({}))}>{t('edit.arrangeNow')}</Button> : null}
      </div>
      <div className="editor-body">
        {view === 'canvas' ? <TypeList types={types.data?.items ?? []} refusal={refusal} focus={palette} onAdd={add} onDone={() => frame.current?.querySelector<HTMLElement>('.canvas')?.focus()} /> : null}
        <div className="editor-main">
          {view === 'canvas' ? <Canvas session={session} state={state} selected={shown} onSelect={select} grouping={grouping} troubles={troubles} onAdd={add} onConnect={() => shown.length && !isFrozen && setConnecting(true)} onPalette={() => setPalette({})} onTell={tell} fit={fit} /> : null}
          {view === 'table' ? <TableView session={session} state={state} selected={shown} onSelect={select} troubles={troubles} types={schemas} onTell={tell} /> : null}
          {view === 'code' ? <CodeView session={session} state={state} troubles={troubles} types={schemas} names={names} goTo={goTo} onTask={(task) => task !== shown[0] && select([task])} /> : null}
          {view === 'settings' ? <div className="editor-settings"><WorkflowForm {...forms} every /></div> : null}
          {view === 'schedules' ? <SchedulesView session={session} state={state} published={published} troubles={troubles} names={names} onTell={tell} /> : null}
        </div>
        {view === 'schedules' || view === 'settings' || (view === 'table' && !shown.length) ? null : <Inspector {...forms} />}
      </div>
      <Problems troubles={troubles} isChecking={problems.isFetching || checked !== state.text} refusal={refusal} onGo={goToProblem} />
      {isConnecting && shown.length ? <ConnectDialog tasks={state.good.tasks} from={shown} onClose={() => setConnecting(false)} onConnect={(edges) => {
        try {
          session.change('edit.connect', (parsed) => edges.reduce((now, [source, target]) => connect(now, source, target), parsed))
        } catch (error) {
          tell(error)
        }
      }} /> : null}
      {grouping.dialog}
      {isPublishing ? <PublishDialog project={project} name={name} text={state.text} before={newest?.definition ?? null} after={state.good.value} troubles={checked === state.text ? troubles : NO_TROUBLES} onClose={() => setPublishing(false)} onPublish={publish} onProblem={(one) => (setPublishing(false), goToProblem(one))} /> : null}
      {isDeciding && info.clash ? <ConflictDialog clash={info.clash} onClose={() => setDeciding(false)} onDecide={(text) => (setDeciding(false), void saving.decide(text))} /> : null}
    </div>
  )
}

const NO_TROUBLES: readonly Trouble[] = []

function Problems({ troubles, isChecking, refusal, onGo }: { troubles: readonly Trouble[]; isChecking: boolean; refusal: string | null; onGo: (one: Trouble) => void }) {
  const t = useT()
  if (refusal !== null) return null
  return (
    <section className="problems" aria-label={t('problems.title')}>
      <p role="status" className={troubles.length ? 'problems-head bad' : 'problems-head'}>{troubles.length ? t('problems.count', { count: troubles.length }) : isChecking ? t('problems.checking') : t('problems.none')}</p>
      {troubles.length ? (
        <ul>
          {troubles.map((one, at) => (
            <li key={at}><button type="button" className="link" onClick={() => onGo(one)}><code>{one.key}</code> {one.message}{one.line === null ? null : <span className="dim"> · {t('problems.line', { line: one.line })}</span>}</button></li>
          ))}
        </ul>
      ) : null}
    </section>
  )
}
