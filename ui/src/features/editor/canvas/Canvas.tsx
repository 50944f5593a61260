/** The canvas: tasks are put, moved and connected; every change is one of the text. */
import {
  Background, BackgroundVariant, Controls, Handle, MiniMap, Position, ReactFlow, ReactFlowProvider, SelectionMode,
  useReactFlow, type Connection, type Edge, type EdgeChange, type Node, type NodeChange, type NodeProps,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import '@/graph/graph.css'
import { memo, useCallback, useEffect, useMemo, useRef, useState, type DragEvent, type KeyboardEvent } from 'react'
import { freePlace } from '@/graph/places'
import type { TaskModel } from '@/definition/parse'
import { closesCircle, connect, copied, disconnect, paste, removeTasks } from '@/definition/tasks'
import { shortened } from '@/graph/Graph'
import { SIZES } from '@/graph/layered'
import { useT } from '@/shared/i18n'
import type { Trouble } from '../problems'
import type { Session, SessionState } from '../session'

export const DRAGGED = 'application/x-shoal-task-type'

interface Props {
  session: Session
  state: SessionState
  selected: readonly string[]
  onSelect: (names: readonly string[]) => void
  troubles: readonly Trouble[]
  onAdd: (type: string, at?: { x: number; y: number }) => void
  onConnect: () => void
  onPalette: () => void
  onTell: (error: unknown) => void
  /** Fits the picture into the window; a new object does it again. */
  fit: object
}

type TaskNode = Node<{ task: TaskModel; problems: number; isOff: boolean }, 'task'>

export function Canvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Picture {...props} />
    </ReactFlowProvider>
  )
}

const edgeId = (source: string, target: string): string => `${source}→${target}`

function Picture({ session, state, selected, onSelect, troubles, onAdd, onConnect, onPalette, onTell, fit }: Props) {
  const t = useT()
  const flow = useReactFlow()
  const box = useRef<HTMLDivElement>(null)
  const [moving, setMoving] = useState<Readonly<Record<string, { x: number; y: number }>>>({})
  const [chosenEdges, setChosenEdges] = useState<ReadonlySet<string>>(new Set())
  const { tasks } = state.good
  const isFrozen = state.refusal !== null || state.parsed.mistakes.length > 0
  const attempt = useCallback(
    (act: () => void) => {
      try {
        act()
      } catch (error) {
        onTell(error)
      }
    },
    [onTell],
  )
  const counts = useMemo(() => {
    const found = new Map<string, number>()
    for (const { task } of troubles) if (task !== null) found.set(task, (found.get(task) ?? 0) + 1)
    return found
  }, [troubles])
  const nodes = useMemo(
    () =>
      tasks.map((task): TaskNode => ({
        id: task.name,
        type: 'task',
        position: moving[task.name] ?? state.places[task.name] ?? { x: 0, y: 0 },
        width: SIZES.width,
        height: SIZES.height,
        selected: selected.includes(task.name),
        data: { task, problems: counts.get(task.name) ?? 0, isOff: task.value.enabled === false },
        ariaLabel: t('canvas.task', { name: task.name, type: task.type, after: task.dependsOn.join(', ') || '–' }),
      })),
    [tasks, state.places, moving, selected, counts, t],
  )
  const edges = useMemo(() => {
    const known = new Set(tasks.map((task) => task.name))
    return tasks.flatMap((task) =>
      [...new Set(task.dependsOn)].filter((name) => known.has(name)).map((name): Edge => {
        const id = edgeId(name, task.name)
        const isNear = selected.includes(task.name) || selected.includes(name)
        return { id, source: name, target: task.name, selected: chosenEdges.has(id), className: isNear ? 'near' : '', ariaLabel: t('canvas.edge', { source: name, target: task.name }) }
      }),
    )
  }, [tasks, selected, chosenEdges, t])

  const changeNodes = (changes: NodeChange<TaskNode>[]): void => {
    const now = new Set(selected)
    let isChosen = false
    const places: Record<string, { x: number; y: number }> = {}
    let hasEnded = false
    for (const change of changes) {
      if (change.type === 'select') {
        isChosen = true
        if (change.selected) now.add(change.id)
        else now.delete(change.id)
      } else if (change.type === 'position' && change.position) {
        places[change.id] = { x: Math.round(change.position.x), y: Math.round(change.position.y) }
        hasEnded ||= change.dragging === false
      } else if (change.type === 'position' && change.dragging === false) {
        hasEnded = true
      }
    }
    if (isChosen) onSelect([...now])
    if (hasEnded) {
      const all = { ...moving, ...places }
      setMoving({})
      const hasMoved = Object.entries(all).some(([name, at]) => state.places[name]?.x !== at.x || state.places[name]?.y !== at.y)
      if (hasMoved) session.place('edit.move', (shown) => ({ ...shown, ...all }))
    } else if (Object.keys(places).length) {
      setMoving((old) => ({ ...old, ...places }))
    }
  }
  const changeEdges = (changes: EdgeChange[]): void => {
    const now = new Set(chosenEdges)
    for (const change of changes) {
      if (change.type !== 'select') continue
      if (change.selected) now.add(change.id)
      else now.delete(change.id)
    }
    setChosenEdges(now)
  }
  const isValid = (one: Connection | Edge): boolean => !closesCircle(tasks, one.source, one.target) && !(tasks.find((task) => task.name === one.target)?.dependsOn.includes(one.source) ?? false)
  const join = (one: Connection): void => attempt(() => session.change('edit.connect', (parsed) => connect(parsed, one.source, one.target)))
  const remove = (): void =>
    attempt(() => {
      if (selected.length) {
        session.change('edit.remove', (parsed) => removeTasks(parsed, selected))
        onSelect([])
      } else if (chosenEdges.size) {
        session.change('edit.disconnect', (parsed) => edges.filter((edge) => chosenEdges.has(edge.id)).reduce((now, edge) => disconnect(now, edge.source, edge.target), parsed))
        setChosenEdges(new Set())
      }
      box.current?.focus()
    })
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() !== 'a') return
      event.preventDefault()
      onSelect(tasks.map((task) => task.name))
      return
    }
    if (event.altKey) return
    const acts: Record<string, () => void> = {
      Delete: remove,
      Backspace: remove,
      a: onPalette,
      c: onConnect,
      f: () => void flow.fitView({ padding: 0.15, maxZoom: 1, duration: 120 }),
      Escape: () => onSelect([]),
    }
    const act = acts[event.key]
    if (!act) return
    event.preventDefault()
    act()
  }

  // The clipboard of the system: tasks go as YAML, so they can be pasted anywhere, also into a text.
  const clip = useRef({ session, selected, state, isFrozen, onSelect, remove, attempt })
  clip.current = { session, selected, state, isFrozen, onSelect, remove, attempt }
  useEffect(() => {
    const isOurs = (): boolean => {
      const active = document.activeElement
      return (active === document.body || (box.current?.contains(active) ?? false)) && !String(getSelection() ?? '')
    }
    const copy = (event: ClipboardEvent): void => {
      const now = clip.current
      if (!isOurs() || !now.selected.length) return
      event.clipboardData?.setData('text/plain', copied(now.state.good, now.selected))
      event.preventDefault()
      if (event.type === 'cut') now.remove()
    }
    const put = (event: ClipboardEvent): void => {
      const now = clip.current
      const text = event.clipboardData?.getData('text/plain') ?? ''
      if (!isOurs() || now.isFrozen || !text) return
      event.preventDefault()
      now.attempt(() => {
        let names: string[] = []
        now.session.change(
          'edit.paste',
          (parsed) => {
            const done = paste(parsed, text)
            names = done?.names ?? []
            return done?.parsed ?? parsed
          },
        )
        if (names.length) now.onSelect(names)
      })
    }
    document.addEventListener('copy', copy)
    document.addEventListener('cut', copy)
    document.addEventListener('paste', put)
    return () => {
      document.removeEventListener('copy', copy)
      document.removeEventListener('cut', copy)
      document.removeEventListener('paste', put)
    }
  }, [])

  const drop = (event: DragEvent): void => {
    const type = event.dataTransfer.getData(DRAGGED)
    if (!type) return
    event.preventDefault()
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY })
    onAdd(type, freePlace(state.places, { x: at.x - SIZES.width / 2, y: at.y - SIZES.height / 2 }))
  }
  const show = useRef(flow.fitView)
  const isEmpty = tasks.length === 0
  const wasEmpty = useRef(isEmpty)
  useEffect(() => {
    if (wasEmpty.current) return // the first task stays where it was put
    const timer = setTimeout(() => void show.current({ padding: 0.15, maxZoom: 1 }), 30)
    return () => clearTimeout(timer)
  }, [fit])
  useEffect(() => {
    wasEmpty.current = isEmpty
  }, [isEmpty])
  return (
    <div
      ref={box}
      className={`graph canvas ${state.parsed.mistakes.length ? 'stale' : ''}`}
      role="group"
      tabIndex={-1}
      aria-label={t('graph.label', { count: tasks.length })}
      onKeyDown={press}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes(DRAGGED) || isFrozen) return
        event.preventDefault()
        event.dataTransfer.dropEffect = 'copy'
      }}
      onDrop={drop}
    >
      <ReactFlow<TaskNode>
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onNodesChange={changeNodes}
        onEdgesChange={changeEdges}
        onConnect={join}
        isValidConnection={isValid}
        nodesDraggable={!isFrozen}
        nodesConnectable={!isFrozen}
        deleteKeyCode={null}
        selectionMode={SelectionMode.Partial}
        multiSelectionKeyCode={['Shift', 'Control', 'Meta']}
        connectionRadius={28}
        onlyRenderVisibleElements
        minZoom={0.05}
        maxZoom={1.75}
        proOptions={{ hideAttribution: true }}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} />
        <Controls showInteractive={false} position="bottom-left" />
        {tasks.length > 24 ? <MiniMap pannable zoomable /> : null}
      </ReactFlow>
      {tasks.length ? null : (
        <div className="canvas-empty">
          <p className="empty-title">{t('canvas.empty')}</p>
          <p className="dim">{t('canvas.empty.detail')}</p>
        </div>
      )}
    </div>
  )
}

const TaskBox = memo(function TaskBox({ data, selected, isConnectable }: NodeProps<TaskNode>) {
  const { task, problems, isOff } = data
  const { retries, run_when: when } = task.value
  const notes = [task.type || '?', typeof retries === 'number' && retries > 0 ? `↻${retries}` : '', typeof when === 'string' && when !== 'all_success' ? when : '']
  return (
    <div className={['task-node plain', selected ? 'chosen' : '', isOff ? 'off' : '', problems ? 'bad' : ''].join(' ')} title={task.name} data-task={task.name}>
      <Handle type="target" position={Position.Left} isConnectable={isConnectable} />
      <span className="task-text">
        <span className="task-name">{shortened(task.name)}</span>
        <span className="task-type">{notes.filter(Boolean).join(' · ')}</span>
      </span>
      {problems ? <span className="task-problems" aria-hidden>{problems}</span> : null}
      <Handle type="source" position={Position.Right} isConnectable={isConnectable} />
    </div>
  )
})

const NODE_TYPES = { task: TaskBox }
