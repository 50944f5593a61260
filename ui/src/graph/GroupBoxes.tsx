/** Groups as elements of a picture: one node while they are folded, else a frame around their tasks. */
import { MinusSquareOutlined, PlusSquareOutlined } from '@ant-design/icons'
import { Handle, Position, type Node, type NodeProps } from '@xyflow/react'
import { Button, Dropdown, type MenuProps } from 'antd'
import { memo, type ReactNode } from 'react'
import { lookOf } from '@/entities/states'
import { useT } from '@/shared/i18n'
import { foldedName, type Groups } from './groups'
import type { Frame } from './places'
import { shortened } from './names'

/** What is done to a group by its buttons. */
export type Fold = (names: readonly string[], isFolded: boolean) => void

export type FoldedNode = Node<{ group: string; type: string; state: string | null; onFold: Fold; isBad: boolean }, 'folded'>
export type FrameNode = Node<{ frame: Frame; onFold: Fold }, 'frame'>

const FRAME = 'frame:' // before the id of a frame

/** Returns the group whose frame has an id; null: it is the id of something else. */
export function framed(id: string): string | null {
  return id.startsWith(FRAME) ? id.slice(FRAME.length) : null
}

/** Returns the nodes of frames, behind the tasks. */
export function frameNodes(frames: readonly Frame[], onFold: Fold, options: Partial<FrameNode> = {}): FrameNode[] {
  return frames.map((frame) => ({
    id: FRAME + frame.name,
    type: 'frame',
    position: { x: frame.x, y: frame.y },
    width: frame.width,
    height: frame.height,
    zIndex: -1,
    selectable: false,
    draggable: false,
    focusable: false,
    connectable: false,
    data: { frame, onFold },
    ...options,
  }))
}

export const FoldedBox = memo(function FoldedBox({ data, selected, isConnectable }: NodeProps<FoldedNode>) {
  const t = useT()
  const { group, type, state, onFold, isBad } = data
  const look = state === null ? null : lookOf(state)
  return (
    <div className={['task-node folded', look ? `tone-${look.tone}` : 'plain', selected ? 'chosen' : '', isBad ? 'bad' : ''].join(' ')} title={group} data-group={group} data-state={state ?? undefined} onDoubleClick={() => onFold([group], false)}>
      <Handle type="target" position={Position.Left} isConnectable={isConnectable} />
      {look ? <span className="glyph" aria-hidden>{look.glyph}</span> : null}
      <span className="task-text grow">
        <span className="task-name">{shortened(group)}</span>
        <span className="task-type">{type}</span>
      </span>
      <button type="button" className="fold nodrag nopan" aria-label={t('group.unfold', { name: group })} onClick={(event) => (event.stopPropagation(), onFold([group], false))}><PlusSquareOutlined /></button>
      <Handle type="source" position={Position.Right} isConnectable={isConnectable} />
    </div>
  )
})

export const FrameBox = memo(function FrameBox({ data }: NodeProps<FrameNode>) {
  const t = useT()
  const { frame, onFold } = data
  return (
    <div className="frame" data-frame={frame.name}>
      <div className="frame-head" onDoubleClick={() => onFold([frame.name], true)}>
        <button type="button" className="fold nodrag nopan" aria-label={t('group.fold', { name: frame.name })} onClick={(event) => (event.stopPropagation(), onFold([frame.name], true))}><MinusSquareOutlined /></button>
        <span className="frame-name">{frame.name}</span>
        <span className="dim small">{t('group.count', { count: frame.tasks.length })}</span>
      </div>
    </div>
  )
})

/** Folds and unfolds by name, for those who work without a mouse, and where groups are far apart. */
export function GroupMenu({ groups, names, onFold, more = [], children }: { groups: Groups; names: readonly string[]; onFold: Fold; more?: NonNullable<MenuProps['items']>; children?: ReactNode }) {
  const t = useT()
  const items: NonNullable<MenuProps['items']> = [
    ...more,
    ...(more.length && names.length ? [{ type: 'divider' as const }] : []),
    ...names.map((name) => {
      const isFolded = groups[name]?.isFolded ?? false
      return { key: foldedName(name), icon: isFolded ? <PlusSquareOutlined /> : <MinusSquareOutlined />, label: t(isFolded ? 'group.unfold' : 'group.fold', { name }), onClick: () => onFold([name], !isFolded) }
    }),
    ...(names.length > 1
      ? [
          { type: 'divider' as const },
          { key: 'fold', label: t('group.foldAll'), onClick: () => onFold(names, true) },
          { key: 'unfold', label: t('group.unfoldAll'), onClick: () => onFold(names, false) },
        ]
      : []),
  ]
  return (
    <Dropdown trigger={['click']} menu={{ items, className: 'group-menu' }}>
      <Button size="small">{children ?? t('group.title')}</Button>
    </Dropdown>
  )
}
