/** The canvas: tasks are put, moved and connected; every change is one of the text. */
import {
  Background, BackgroundVariant, Controls, Handle, MiniMap, Position, ReactFlow, ReactFlowProvider, SelectionMode,
  useReactFlow, useStore, useStoreApi, type Connection, type Edge, type EdgeChange, type FinalConnectionState, type Node, type NodeChange, type NodeProps,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import '@/graph/graph.css'
import { memo, useCallback, useEffect, useMemo, useRef, useState, type DragEvent, type KeyboardEvent, type MouseEvent } from 'react'
import type { TaskModel } from '@/definition/parse'
import { closesCircle, connect, copied, disconnect, paste, removeTasks } from '@/definition/tasks'
import { FoldedBox, FrameBox, framed, frameNodes, type FoldedNode, type FrameNode } from '@/graph/GroupBoxes'
import { groupNamed } from '@/graph/groups'
import { SIZES } from '@/graph/layered'
import { ManyTasks } from '@/graph/ManyTasks'
import { shortened } from '@/graph/names'
import { useLabels } from '@/graph/labels'
import { boxAt, fitting, MOST_MOUNTED, seen, within, type Box } from '@/graph/paint'
import { frameAt, framesOf, freePlace, placesOfItems, type Place } from '@/graph/places'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/graph'
import type { Trouble } from '../problems'
import type { Session, SessionState } from '../session'
import type { Grouping } from './grouping'
import { chosenItems, edgesOf, itemsOf, movedBy, tasksIn, type Move } from './items'

export const DRAGGED = 'application/x-shoal-task-type'

interface Props {
  session: Session
  state: SessionState
  selected: readonly string[]
  onSelect: (names: readonly string[]) => void
  grouping: Grouping
  troubles: readonly Trouble[]
  onAdd: (type: string, at?: { x: number; y: number }) => void
  onConnect: () => void
  onPalette: () => void
  onTell: (error: unknown) => void
  /** Fits the picture into the window; a new object does it again. */
  fit: object
}

type TaskNode = Node<{ task: TaskModel; problems: number; isOff: boolean; isFar: boolean }, 'task'>
type AnyNode = TaskNode | FoldedNode | FrameNode

const LEAST_ZOOM = 0.03
const FAR_NAME = 14
const ORIGIN: Place = { x: 0, y: 0 }
const MOST_CHOSEN = 40 // chosen tasks that are elements while most are painted

export function Canvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Picture {...props} />
    </ReactFlowProvider>
  )
}

const READ_ZOOM = 0.75 // tasks are read with ease, and handles met
const LEAST_READ_ZOOM = 0.5 // below it they are not

function Picture({ session, state, selected, onSelect, grouping, troubles, onAdd, onConnect, onPalette, onTell, fit }: Props) {
  const t = useT()
  const flow = useReactFlow()
  const store = useStoreApi()
  const box = useRef<HTMLDivElement>(null)
  const [moving, setMoving] = useState<Move | null>(null)
  const [chosenEdges, setChosenEdges] = useState<ReadonlySet<string>>(new Set())
  const [hovered, setHovered] = useState<string | null>(null)
  const [isJoining, setJoining] = useState(false)
  const drawn = useRef<Place | null>(null) // where a rectangle of choice began
  const { tasks } = state.good
  const { groups, fold } = grouping
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
  const items = useMemo(() => itemsOf(tasks, groups), [tasks, groups])
  const standing = useMemo(() => placesOfItems(items, groups, state.places), [items, groups, state.places])
  const places = useMemo(() => (moving ? movedBy(standing, moving.items, moving.by) : standing), [standing, moving])
  const frames = useMemo(() => framesOf(tasks, groups, moving ? movedBy(state.places, moving.tasks, moving.by) : state.places), [tasks, groups, state.places, moving])
  const chosen = useMemo(() => chosenItems(items, selected), [items, selected])
  const lines = useMemo(() => edgesOf(items), [items])

  // So many tasks that one picture shows them; what is pointed at or chosen is an element all the same.
  const isLarge = items.length > MOST_MOUNTED
  const spots = useMemo(() => items.map((item) => places[item.name] ?? ORIGIN), [items, places])
  const isMany = useStore(({ transform: [x, y, zoom], width, height }) => isLarge && seen(spots, SIZES, { x, y, zoom }, { width, height }) > MOST_MOUNTED)
  const isMeasured = useStore(({ width, height }) => width > 0 && height > 0)
  const boxes = useMemo(
    () => items.map((item, at): Box => ({ name: item.name, label: shortened(groupNamed(item.name) ?? item.name), place: spots[at] ?? ORIGIN, tone: item.tasks.some((task) => counts.has(task)) ? 'failed' : 'plain', glyph: '', isCritical: false, isGroup: item.task === null })),
    [items, spots, counts],
  )
  const near = useMemo(() => lines.map(({ source, target }) => ({ source, target, isCritical: false, isNear: chosen.has(source) || chosen.has(target) })), [lines, chosen])
  const element = useMemo(() => {
    if (!isMany) return null
    const shown = new Set(chosen.size <= MOST_CHOSEN ? chosen : [])
    if (hovered !== null) shown.add(hovered)
    return shown
  }, [isMany, chosen, hovered])

  const nodes = useMemo((): AnyNode[] => {
    const all = items.flatMap((item): (TaskNode | FoldedNode)[] => {
      if (element && !element.has(item.name)) return []
      const { task } = item
      const own = { id: item.name, position: places[item.name] ?? ORIGIN, width: SIZES.width, height: SIZES.height, selected: chosen.has(item.name) }
      if (task) return [{ ...own, type: 'task', data: { task, problems: counts.get(task.name) ?? 0, isOff: task.value.enabled === false, isFar: element !== null }, ariaLabel: t('canvas.task', { name: task.name, type: task.type, after: task.dependsOn.join(', ') || '–' }) }]
      const group = groupNamed(item.name) ?? ''
      const count = t('group.count', { count: item.tasks.length })
      return [{ ...own, type: 'folded', connectable: false, data: { group, type: count, state: null, onFold: fold, isBad: item.tasks.some((name) => counts.has(name)) }, ariaLabel: t('canvas.group', { name: group, tasks: count }) }]
    })
    return [...(element ? [] : frameNodes(frames, fold, { draggable: !isFrozen })), ...all]
    // Folding does the same whenever it was made.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [items, places, frames, element, chosen, counts, isFrozen, t])
  const edges = useMemo(
    () =>
      lines
        .filter(({ source, target }) => !element || (element.has(source) && element.has(target)))
        .map(({ id, source, target, isOwn }): Edge => ({ id, source, target, selectable: isOwn, selected: chosenEdges.has(id), className: chosen.has(source) || chosen.has(target) ? 'near' : '', ariaLabel: t('canvas.edge', { source: groupNamed(source) ?? source, target: groupNamed(target) ?? target }) })),
    [lines, element, chosen, chosenEdges, t],
  )

  /** Chooses an item, or with a key held changes whether it is chosen. */
  const choose = (names: readonly string[], event: MouseEvent | globalThis.MouseEvent): void => {
    if (!event.shiftKey && !event.ctrlKey && !event.metaKey) onSelect(names)
    else onSelect(names.every((name) => selected.includes(name)) ? selected.filter((name) => !names.includes(name)) : [...new Set([...selected, ...names])])
  }
  const changeNodes = (changes: NodeChange<AnyNode>[]): void => {
    const now = new Set(selected)
    let isChosen = false
    const dragged = new Set<string>()
    let by: Place | null = null
    let hasEnded = false
    for (const change of changes) {
      if (change.type === 'select' && !isMany) {
        isChosen = true
        for (const task of tasksIn(items, new Set([change.id]))) {
          if (change.selected) now.add(task)
          else now.delete(task)
        }
      } else if (change.type === 'position') {
        hasEnded ||= change.dragging === false
        const frame = frames.find((one) => one.name === framed(change.id))
        if (frame) for (const task of frame.tasks) dragged.add(task)
        else dragged.add(change.id)
        // All that is dragged together goes the same way.
        const from = frame ? { x: frame.x - (moving?.by.x ?? 0), y: frame.y - (moving?.by.y ?? 0) } : standing[change.id]
        if (change.position && from) by = { x: Math.round(change.position.x - from.x), y: Math.round(change.position.y - from.y) }
      }
    }
    if (isChosen) onSelect([...now])
    if (!dragged.size) return
    if (isMany && [...dragged].some((name) => chosen.has(name))) for (const name of chosen) dragged.add(name)
    const move: Move = { items: dragged, tasks: new Set(tasksIn(items, dragged)), by: by ?? moving?.by ?? ORIGIN }
    if (!hasEnded) {
      setMoving(move)
      return
    }
    setMoving(null)
    if (move.by.x || move.by.y) session.place('edit.move', (shown) => movedBy(shown, move.tasks, move.by))
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
  const canJoin = (source: string, target: string): boolean => groupNamed(source) === null && groupNamed(target) === null && !closesCircle(tasks, source, target) && !(tasks.find((task) => task.name === target)?.dependsOn.includes(source) ?? false)
  const isValid = (one: Connection | Edge): boolean => canJoin(one.source, one.target)
  const join = ({ source, target }: { source: string; target: string }): void => attempt(() => session.change('edit.connect', (parsed) => connect(parsed, source, target)))
  const pointOf = ({ clientX, clientY }: { clientX: number; clientY: number }): Place => flow.screenToFlowPosition({ x: clientX, y: clientY })
  /** A line that ends on a task joins it, whether or not its handle was met. */
  const endJoining = (event: globalThis.MouseEvent | TouchEvent, { isValid: isDone, fromHandle }: FinalConnectionState): void => {
    setJoining(false)
    const at = 'changedTouches' in event ? event.changedTouches[0] : event
    if (isDone || !fromHandle || !at) return
    const other = boxAt(boxes, SIZES, pointOf(at))
    if (!other) return
    const [source, target] = fromHandle.type === 'source' ? [fromHandle.nodeId, other.name] : [other.name, fromHandle.nodeId]
    if (canJoin(source, target)) join({ source, target })
  }
  const point = (event: MouseEvent): void => {
    if (!isMany || moving || (event.buttons && !isJoining)) return
    const name = boxAt(boxes, SIZES, pointOf(event))?.name ?? null
    if (name !== hovered) setHovered(name)
  }
  const clickPane = (event: MouseEvent): void => {
    if (!isMany) return
    const at = pointOf(event)
    const one = boxAt(boxes, SIZES, at)
    choose(one ? tasksIn(items, new Set([one.name])) : (frameAt(frames, at)?.tasks ?? []), event)
  }
  const endDrawing = (event: MouseEvent): void => {
    const from = drawn.current
    drawn.current = null
    if (from && isMany) onSelect(tasksIn(items, new Set(within(boxes, SIZES, from, pointOf(event)).map((one) => one.name))))
  }
  const fitAll = (duration?: number): void => {
    const { width, height } = store.getState()
    const timed = duration === undefined ? {} : { duration }
    if (isLarge) void flow.setViewport(fitting(spots, SIZES, { width, height }, LEAST_ZOOM), timed)
    else void flow.fitView({ padding: 0.15, maxZoom: 1, ...timed })
  }
  const remove = (): void =>
    attempt(() => {
      if (selected.length) {
        session.change('edit.remove', (parsed) => removeTasks(parsed, selected))
        onSelect([])
      } else if (chosenEdges.size) {
        session.change('edit.disconnect', (parsed) => lines.filter((edge) => edge.isOwn && chosenEdges.has(edge.id)).reduce((now, edge) => disconnect(now, edge.source, edge.target), parsed))
        setChosenEdges(new Set())
      }
      box.current?.focus()
    })
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey) {
      const key = event.key.toLowerCase()
      if (key === 'a') onSelect(tasks.map((task) => task.name))
      else if (key !== 'g' || !(event.shiftKey ? grouping.ungroup() : grouping.group())) return
      event.preventDefault()
      return
    }
    if (event.altKey) return
    const acts: Record<string, () => void> = {
      Delete: remove,
      Backspace: remove,
      a: onPalette,
      c: onConnect,
      f: () => fitAll(120),
      '-': () => void grouping.foldChosen(true),
      '+': () => void grouping.foldChosen(false),
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
  const labels = useLabels()
  const isFirst = useRef(true)
  /** All of it; at first what is chosen, where all of it would be too small to read. */
  const showFirst = (): void => {
    const { width, height } = store.getState()
    const place = selected.length === 1 && isFirst.current ? places[selected[0] ?? ''] : undefined
    isFirst.current = false
    if (!place || fitting(spots, SIZES, { width, height }, LEAST_ZOOM).zoom >= LEAST_READ_ZOOM) fitAll()
    else void flow.setCenter(place.x + SIZES.width / 2, place.y + SIZES.height / 2, { zoom: READ_ZOOM })
  }
  const show = useRef(showFirst)
  show.current = showFirst
  const isEmpty = tasks.length === 0
  const wasEmpty = useRef(isEmpty)
  useEffect(() => {
    if (wasEmpty.current) return // the first task stays where it was put
    if (!isMeasured) return
    const timer = setTimeout(() => show.current(), 30)
    return () => clearTimeout(timer)
  }, [fit, isMeasured])
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
      onMouseMove={point}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes(DRAGGED) || isFrozen) return
        event.preventDefault()
        event.dataTransfer.dropEffect = 'copy'
      }}
      onDrop={drop}
    >
      <ReactFlow<AnyNode>
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        onNodesChange={changeNodes}
        onEdgesChange={changeEdges}
        onConnect={join}
        onConnectStart={() => setJoining(true)}
        onConnectEnd={endJoining}
        isValidConnection={isValid}
        onNodeClick={(event, node) => {
          const frame = frames.find((one) => one.name === framed(node.id))
          if (frame || isMany) choose(frame?.tasks ?? tasksIn(items, new Set([node.id])), event)
        }}
        onPaneClick={clickPane}
        onSelectionStart={(event) => (drawn.current = pointOf(event))}
        onSelectionEnd={endDrawing}
        nodesDraggable={!isFrozen}
        nodesConnectable={!isFrozen}
        deleteKeyCode={null}
        selectionMode={SelectionMode.Partial}
        multiSelectionKeyCode={['Shift', 'Control', 'Meta']}
        connectionRadius={28}
        onlyRenderVisibleElements
        minZoom={LEAST_ZOOM}
        ariaLabelConfig={labels}
        maxZoom={1.75}
        proOptions={{ hideAttribution: true }}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} />
        <Controls showInteractive={false} position="bottom-left" onFitView={() => fitAll()} />
        {isMany ? <ManyTasks boxes={boxes} edges={near} places={places} frames={frames} chosen={chosen} label={t('graph.many', { count: items.length })} /> : null}
        {items.length > 24 && !isMany ? <MiniMap pannable zoomable /> : null}
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
  const { task, problems, isOff, isFar } = data
  const { retries, run_when: when } = task.value
  const notes = [task.type || '?', typeof retries === 'number' && retries > 0 ? `↻${retries}` : '', typeof when === 'string' && when !== 'all_success' ? when : '']
  return (
    <div className={['task-node plain', selected ? 'chosen' : '', isOff ? 'off' : '', problems ? 'bad' : '', isFar ? 'far' : ''].join(' ')} title={task.name} data-task={task.name}>
      <Handle type="target" position={Position.Left} isConnectable={isConnectable} />
      <span className="task-text">
        <span className="task-name">{shortened(task.name, isFar ? FAR_NAME : undefined)}</span>
        {isFar ? null : <span className="task-type">{notes.filter(Boolean).join(' · ')}</span>}
      </span>
      {problems ? <span className="task-problems" aria-hidden>{problems}</span> : null}
      <Handle type="source" position={Position.Right} isConnectable={isConnectable} />
    </div>
  )
})

const NODE_TYPES = { task: TaskBox, folded: FoldedBox, frame: FrameBox }
