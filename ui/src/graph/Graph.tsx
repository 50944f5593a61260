/** The picture of a graph: pan, zoom, find, choose. Read only. */
import {
  Background, BackgroundVariant, Controls, Handle, MiniMap, Position, ReactFlow, ReactFlowProvider,
  useReactFlow, useStore, useStoreApi, type Edge, type Node, type NodeProps,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import './graph.css'
import { AutoComplete } from 'antd'
import { memo, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useNamed, useT } from '@/shared/i18n'
import { lookOf } from '@/entities/states'
import { SIZES } from './layered'
import { ManyTasks } from './ManyTasks'
import { boxAt, fitting, seen, type Box } from './paint'
import { placed, type Places } from './places'

export interface PictureTask {
  name: string
  label?: string // what is written on it instead of the name
  dependsOn: readonly string[]
  type: string
  state: string | null // null: a definition, which has no states
  note?: string
  change?: 'added' | 'removed' | 'changed' // against another version
}

interface Props {
  tasks: readonly PictureTask[]
  /** Where people have put them; the others are arranged. */
  places?: Places
  chosen?: string | undefined
  onChoose?: (name: string) => void
  critical?: ReadonlySet<string>
  /** Classes of edges, by `source→target`. */
  edgeMarks?: ReadonlyMap<string, string>
  aside?: ReactNode
  /** What the field to find something says. */
  finds?: string
}

type TaskNode = Node<{ task: PictureTask; critical: boolean; stateText: string }, 'task'>

const NO_PLACES: Places = {}
const MOST_MOUNTED = 120 // more tasks than that at once are one picture
const LEAST_ZOOM = 0.03
const NO_NODES: TaskNode[] = []
const NO_EDGES: Edge[] = []
const LONGEST_NAME = 22
const FAR_NAME = 14
const FAR = 0.6 // below this zoom nodes have a large name alone
const FARTHEST = 0.22 // and below this one they are coloured boxes with a glyph

export function Graph(props: Props) {
  return (
    <ReactFlowProvider>
      <Picture {...props} />
    </ReactFlowProvider>
  )
}

function Picture({ tasks, places: given = NO_PLACES, chosen, onChoose, critical, edgeMarks, aside, finds }: Props) {
  const t = useT()
  const named = useNamed()
  const flow = useReactFlow()
  const shape = tasks.map((task) => `${task.name}<${task.dependsOn.join(',')}`).join(';')
  // Only the shape moves nodes: states change in place.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const places = useMemo(() => placed(tasks, given), [shape, given])
  const nodes = useMemo(
    () =>
      tasks.map((task): TaskNode => {
        const place = places[task.name]
        return {
          id: task.name,
          type: 'task',
          position: { x: place?.x ?? 0, y: place?.y ?? 0 },
          width: SIZES.width,
          height: SIZES.height,
          selected: task.name === chosen,
          data: { task, critical: critical?.has(task.name) ?? false, stateText: task.state ?? '' },
          ariaLabel: [task.name, task.type, task.state === null ? '' : named('state', task.state)].filter(Boolean).join(', '),
        }
      }),
    // The words change with the language, and then all is drawn anew.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [tasks, places, chosen, critical],
  )
  const edges = useMemo(() => edgesOf(tasks, critical, chosen, edgeMarks), [tasks, critical, chosen, edgeMarks])
  const spots = useMemo(() => tasks.map((task) => places[task.name] ?? { x: 0, y: 0 }), [tasks, places])
  const isLarge = tasks.length > MOST_MOUNTED
  const isMany = useStore(({ transform: [x, y, zoom], width, height }) => isLarge && seen(spots, SIZES, { x, y, zoom }, { width, height }) > MOST_MOUNTED)
  const isMeasured = useStore(({ width, height }) => width > 0 && height > 0)
  const store = useStoreApi()
  const boxes = useMemo(
    () => (isLarge ? tasks.map((task, at): Box => ({ name: task.name, label: shortened(task.label ?? task.name), place: spots[at] ?? { x: 0, y: 0 }, tone: task.state === null ? 'plain' : lookOf(task.state).tone, glyph: task.state === null ? '' : lookOf(task.state).glyph, isCritical: critical?.has(task.name) ?? false })) : []),
    [isLarge, tasks, spots, critical],
  )
  const lines = useMemo(() => (isLarge ? edges.map(({ source, target }) => ({ source, target, isCritical: (critical?.has(source) ?? false) && (critical?.has(target) ?? false) })) : []), [isLarge, edges, critical])
  const fit = useRef(flow.fitView)
  const fitAll = (): void => {
    const { width, height } = store.getState()
    if (isLarge) void flow.setViewport(fitting(spots, SIZES, { width, height }, LEAST_ZOOM))
  }
  useEffect(() => {
    if (isLarge) {
      if (isMeasured) fitAll()
      return
    }
    const timer = setTimeout(() => void fit.current({ padding: 0.12, maxZoom: 1 }), 0)
    return () => clearTimeout(timer)
    // Only the shape moves the view.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shape, isMeasured])
  const labels = {
    'node.a11yDescription.default': t('graph.open'),
    'node.a11yDescription.keyboardDisabled': t('graph.open'),
    'edge.a11yDescription.default': '',
    'controls.ariaLabel': t('graph.controls'),
    'controls.zoomIn.ariaLabel': t('graph.zoomIn'),
    'controls.zoomOut.ariaLabel': t('graph.zoomOut'),
    'controls.fitView.ariaLabel': t('graph.fit'),
    'minimap.ariaLabel': t('graph.map'),
  }
  const fly = (name: string): void => {
    onChoose?.(name)
    const place = places[name]
    if (place) void flow.setCenter(place.x + SIZES.width / 2, place.y + SIZES.height / 2, { zoom: 1, duration: 120 })
  }
  return (
    <div className="graph" role="group" aria-label={t('graph.label', { count: tasks.length })}>
      <ReactFlow
        nodes={isMany ? NO_NODES : nodes}
        edges={isMany ? NO_EDGES : edges}
        nodeTypes={NODE_TYPES}
        onNodeClick={(_, node) => onChoose?.(node.id)}
        onSelectionChange={() => undefined}
        onPaneClick={(event) => {
          const one = isMany ? boxAt(boxes, SIZES, flow.screenToFlowPosition({ x: event.clientX, y: event.clientY })) : undefined
          if (one) onChoose?.(one.name)
        }}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        onlyRenderVisibleElements
        ariaLabelConfig={labels}
        minZoom={LEAST_ZOOM}
        maxZoom={1.75}
        fitView={!isLarge}
        fitViewOptions={{ padding: 0.12, maxZoom: 1 }}
        proOptions={{ hideAttribution: true }}
        onKeyDownCapture={(event) => {
          const id = (event.target as Element).getAttribute('data-id')
          if (event.key === 'Enter' && id) onChoose?.(id)
        }}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} />
        <Controls showInteractive={false} position="bottom-left" onFitView={fitAll} />
        {isMany ? <ManyTasks boxes={boxes} edges={lines} places={places} chosen={chosen} label={t('graph.many', { count: tasks.length })} /> : null}
        {tasks.length > 24 && !isMany ? <MiniMap pannable zoomable nodeClassName={(node) => `map-${lookOf((node as TaskNode).data.task.state ?? 'WAITING').tone}`} /> : null}
      </ReactFlow>
      <div className="graph-tools">
        <Finder names={tasks.map((task) => task.name)} onFind={fly} text={finds ?? t('graph.find')} />
        {aside}
      </div>
    </div>
  )
}

function Finder({ names, onFind, text: finds }: { names: readonly string[]; onFind: (name: string) => void; text: string }) {
  const [text, setText] = useState('')
  const wanted = text.toLowerCase()
  const options = names.filter((name) => name.toLowerCase().includes(wanted)).slice(0, 30)
  return (
    <AutoComplete
      className="graph-find"
      size="small"
      value={text}
      onChange={setText}
      onSelect={(name: string) => onFind(name)}
      options={text ? options.map((value) => ({ value })) : []}
      placeholder={finds}
      aria-label={finds}
      allowClear
    />
  )
}

const TaskBox = memo(function TaskBox({ data, selected }: NodeProps<TaskNode>) {
  const level = useStore(({ transform: [, , zoom] }) => (zoom < FARTHEST ? 'farthest' : zoom < FAR ? 'far' : ''))
  const { task, critical } = data
  const look = task.state === null ? null : lookOf(task.state)
  const classes = ['task-node', look ? `tone-${look.tone}` : 'plain', level, selected ? 'chosen' : '', critical ? 'critical' : '', task.change ?? '']
  return (
    <div className={classes.join(' ')} title={task.name} data-state={task.state ?? undefined}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {look ? (
        <span className="glyph" aria-hidden>
          {look.glyph}
        </span>
      ) : null}
      {level === 'farthest' ? null : (
        <span className="task-text">
          <span className="task-name">{shortened(task.label ?? task.name, level ? FAR_NAME : LONGEST_NAME)}</span>
          {level ? null : <span className="task-type">{[task.type, task.note].filter(Boolean).join(' · ')}</span>}
        </span>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  )
})

const NODE_TYPES = { task: TaskBox }

function edgesOf(tasks: readonly PictureTask[], critical: ReadonlySet<string> | undefined, chosen: string | undefined, marks: ReadonlyMap<string, string> | undefined): Edge[] {
  const known = new Set(tasks.map((task) => task.name))
  return tasks.flatMap((task) =>
    [...new Set(task.dependsOn)]
      .filter((name) => known.has(name))
      .map((name): Edge => {
        const isCritical = (critical?.has(task.name) ?? false) && (critical?.has(name) ?? false)
        const isNear = chosen === task.name || chosen === name
        const className = [isCritical ? 'critical' : '', isNear ? 'near' : '', marks?.get(`${name}→${task.name}`) ?? ''].join(' ')
        return { id: `${name}→${task.name}`, source: name, target: task.name, className, focusable: false, ariaLabel: `${name} → ${task.name}` }
      }),
  )
}

/** Names keep their ends, which tell partitions apart. */
export function shortened(name: string, most = LONGEST_NAME): string {
  if (name.length <= most) return name
  const end = Math.floor((most - 1) / 2)
  return `${name.slice(0, most - 1 - end)}…${name.slice(-end)}`
}
