/** The picture of a graph: pan, zoom, find, choose, fold. Read only. */
import {
  Background, BackgroundVariant, Controls, Handle, MiniMap, Position, ReactFlow, ReactFlowProvider,
  useReactFlow, useStore, useStoreApi, type Edge, type Node, type NodeProps,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import './graph.css'
import { AutoComplete } from 'antd'
import { memo, useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useNamed, useT } from '@/shared/i18n'
import '@/shared/i18n/graph'
import { lookOf } from '@/entities/states'
import { FoldedBox, FrameBox, frameNodes, GroupMenu, type Fold, type FoldedNode, type FrameNode } from './GroupBoxes'
import { collapsed, countsText, foldedName, groupNamed, groupsWith, NO_GROUPS, standingFor, worstFirst, type Groups } from './groups'
import { SIZES } from './layered'
import { ManyTasks } from './ManyTasks'
import { shortened } from './names'
import { useLabels } from './labels'
import { boxAt, fitting, MOST_MOUNTED, seen, type Box } from './paint'
import { frameAt, framesOf, placed, placesOfItems, type Places } from './places'

export interface PictureTask {
  name: string
  label?: string // what is written on it instead of the name
  dependsOn: readonly string[]
  type: string
  state: string | null // null: a definition, which has no states
  note?: string
  change?: 'added' | 'removed' | 'changed' // against another version
  group?: string // it stands for the tasks of this group
}

interface Props {
  tasks: readonly PictureTask[]
  /** Where people have put them; the others are arranged. */
  places?: Places
  groups?: Groups
  onFold?: Fold
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
type AnyNode = TaskNode | FoldedNode | FrameNode

const NO_PLACES: Places = {}
const LEAST_ZOOM = 0.03
const NO_NODES: AnyNode[] = []
const NO_FOLD: Fold = () => undefined
const NO_EDGES: Edge[] = []
const NONE: ReadonlySet<string> = new Set()
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

function Picture({ tasks: all, places: given = NO_PLACES, groups = NO_GROUPS, onFold = NO_FOLD, chosen: wanted, onChoose, critical: path, edgeMarks, aside, finds }: Props) {
  const t = useT()
  const named = useNamed()
  const flow = useReactFlow()
  const { tasks, stands } = useMemo(() => ({ tasks: collapsed(all, groups, (group, members, dependsOn) => summary(group, members, dependsOn, (count) => t('group.count', { count }))), stands: standingFor(groups) }), [all, groups, t])
  const chosen = wanted === undefined || wanted === null ? undefined : (stands.get(wanted) ?? wanted)
  const critical = useMemo(() => (path && stands.size ? new Set([...path].map((name) => stands.get(name) ?? name)) : path), [path, stands])
  const shape = `${all.map((task) => `${task.name}<${task.dependsOn.join(',')}`).join(';')}|${Object.entries(groups).map(([name, group]) => `${name}${group.isFolded}${group.tasks.join(',')}`).join(';')}`
  // Only the shape moves nodes: states change in place.
  const { places, frames } = useMemo(() => {
    const found = placed(all, given, groups)
    return { places: groups === NO_GROUPS ? found : placesOfItems(tasks, groups, found), frames: framesOf(all, groups, found) }
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shape, given])
  const nodes = useMemo(
    () =>
      tasks.map((task): TaskNode | FoldedNode => {
        const place = places[task.name]
        const own = { id: task.name, position: { x: place?.x ?? 0, y: place?.y ?? 0 }, width: SIZES.width, height: SIZES.height, selected: task.name === chosen }
        if (task.group !== undefined) {
          const states = task.state === null ? '' : named('state', task.state)
          return { ...own, type: 'folded', data: { group: task.group, type: [task.type, task.note].filter(Boolean).join(' · '), state: task.state, onFold, isBad: false }, ariaLabel: t('group.folded', { name: task.group, tasks: task.type, states }) }
        }
        return {
          ...own,
          type: 'task',
          data: { task, critical: critical?.has(task.name) ?? false, stateText: task.state ?? '' },
          ariaLabel: [task.name, task.type, task.state === null ? '' : named('state', task.state)].filter(Boolean).join(', '),
        }
      }),
    // The words change with the language, and then all is drawn anew.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [tasks, places, chosen, critical, onFold],
  )
  const framing = useMemo(() => frameNodes(frames, onFold), [frames, onFold])
  const mounted = useMemo((): AnyNode[] => [...framing, ...nodes], [framing, nodes])
  const edges = useMemo(() => edgesOf(tasks, critical, chosen, edgeMarks), [tasks, critical, chosen, edgeMarks])
  const spots = useMemo(() => tasks.map((task) => places[task.name] ?? { x: 0, y: 0 }), [tasks, places])
  const isLarge = tasks.length > MOST_MOUNTED
  const isMany = useStore(({ transform: [x, y, zoom], width, height }) => isLarge && seen(spots, SIZES, { x, y, zoom }, { width, height }) > MOST_MOUNTED)
  const isMeasured = useStore(({ width, height }) => width > 0 && height > 0)
  const store = useStoreApi()
  const boxes = useMemo(
    () => (isLarge ? tasks.map((task, at): Box => ({ name: task.name, label: shortened(task.label ?? task.name), place: spots[at] ?? { x: 0, y: 0 }, tone: task.state === null ? 'plain' : lookOf(task.state).tone, glyph: task.state === null ? '' : lookOf(task.state).glyph, isCritical: critical?.has(task.name) ?? false, isGroup: task.group !== undefined })) : []),
    [isLarge, tasks, spots, critical],
  )
  const lines = useMemo(() => (isLarge ? edges.map(({ source, target }) => ({ source, target, isCritical: (critical?.has(source) ?? false) && (critical?.has(target) ?? false), isNear: chosen === source || chosen === target })) : []), [isLarge, edges, critical, chosen])
  const outlined = useMemo(() => (chosen === undefined ? NONE : new Set([chosen])), [chosen])
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
    // Only other tasks move the view.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [all.length, isMeasured])
  const labels = useLabels()
  const fly = (name: string): void => {
    onChoose?.(name)
    const place = places[stands.get(name) ?? name]
    if (place) void flow.setCenter(place.x + SIZES.width / 2, place.y + SIZES.height / 2, { zoom: 1, duration: 120 })
  }
  const open = (id: string): void => {
    const group = groupNamed(id)
    if (group === null) onChoose?.(id)
    else onFold([group], false)
  }
  const known = useMemo(() => groupsWith(groups, all.map((task) => task.name)), [groups, all])
  return (
    <div className="graph" role="group" aria-label={t('graph.label', { count: all.length })}>
      <ReactFlow<AnyNode>
        nodes={isMany ? NO_NODES : mounted}
        edges={isMany ? NO_EDGES : edges}
        nodeTypes={NODE_TYPES}
        onNodeClick={(_, node) => node.type !== 'frame' && open(node.id)}
        onSelectionChange={() => undefined}
        onPaneClick={(event) => {
          if (!isMany) return
          const point = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY })
          const one = boxAt(boxes, SIZES, point)
          const frame = one ? undefined : frameAt(frames, point)
          if (one) open(one.name)
          else if (frame) onFold([frame.name], true)
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
          if (event.key === 'Enter' && id) open(id)
        }}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} />
        <Controls showInteractive={false} position="bottom-left" onFitView={fitAll} />
        {isMany ? <ManyTasks boxes={boxes} edges={lines} places={places} frames={frames} chosen={outlined} label={t('graph.many', { count: tasks.length })} /> : null}
        {tasks.length > 24 && !isMany ? <MiniMap pannable zoomable nodeClassName={mapClass} /> : null}
      </ReactFlow>
      <div className="graph-tools">
        <Finder names={all.map((task) => task.name)} onFind={fly} text={finds ?? t('graph.find')} />
        {known.length ? <GroupMenu groups={groups} names={known} onFold={onFold} /> : null}
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
          <span className="task-name">{shortened(task.label ?? task.name, level ? FAR_NAME : undefined)}</span>
          {level ? null : <span className="task-type">{[task.type, task.note].filter(Boolean).join(' · ')}</span>}
        </span>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  )
})

const NODE_TYPES = { task: TaskBox, folded: FoldedBox, frame: FrameBox }

const mapClass = (node: AnyNode): string => (node.type === 'frame' ? 'map-frame' : `map-${lookOf((node.type === 'folded' ? node.data.state : node.data.task.state) ?? 'WAITING').tone}`)

/** What stands for the tasks of a folded group: the worst of their states, and how many have which. */
function summary(group: string, tasks: readonly PictureTask[], dependsOn: readonly string[], count: (tasks: number) => string): PictureTask {
  const states = worstFirst(tasks.flatMap((task) => task.state ?? []))
  const isChanged = tasks.some((task) => task.change)
  return { name: foldedName(group), label: group, dependsOn, type: count(tasks.length), state: states[0]?.[0] ?? null, note: countsText(states), group, ...(isChanged ? { change: 'changed' as const } : {}) }
}

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
