/**
 * A table of many rows: only those that are seen are mounted, and rows keep their height.
 * `j` and `k` move, Enter opens. Columns that `hide` on narrow screens leave room for the others.
 */
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'

export interface Column<Row> {
  key: string
  title: ReactNode
  width: string // of a grid track: 120px, minmax(160px, 2fr)
  render: (row: Row) => ReactNode
  look?: string // classes of its cells: a text alone needs no element, what is `whole` is never cut
  hide?: 'narrow' | 'medium'
  sort?: { active: 'ascending' | 'descending' | null; toggle: () => void }
}

interface Props<Row> {
  label: string
  rows: readonly Row[]
  columns: readonly Column<Row>[]
  rowKey: (row: Row) => string | number
  onOpen?: (row: Row) => void
  isChosen?: (row: Row) => boolean
  footer?: ReactNode
  rowHeight?: number
  /** Called when the last rows are seen: more of them can be fetched. */
  onEnd?: (() => void) | undefined
}

export function DataTable<Row>(props: Props<Row>) {
  const { label, rows, columns, rowKey, onOpen, isChosen, footer, rowHeight = 40, onEnd } = props
  const box = useRef<HTMLDivElement>(null)
  const [current, setCurrent] = useState(0)
  const width = useWidth()
  const shown = useMemo(
    () => columns.filter((column) => !(column.hide === 'narrow' && width < 640) && !(column.hide && width < 1000 && column.hide === 'medium')),
    [columns, width],
  )
  const tracks = shown.map((column) => column.width).join(' ')
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 6,
  })
  const lastSeen = virtual.getVirtualItems().at(-1)?.index ?? 0
  const isAtEnd = rows.length > 0 && lastSeen >= rows.length - 1
  useEffect(() => {
    if (isAtEnd) onEnd?.()
    // Once for each number of rows, whatever function it is.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [isAtEnd, rows.length])
  const move = (event: KeyboardEvent): void => {
    const step = event.key === 'j' || event.key === 'ArrowDown' ? 1 : event.key === 'k' || event.key === 'ArrowUp' ? -1 : 0
    if (step) {
      event.preventDefault()
      const next = Math.min(rows.length - 1, Math.max(0, current + step))
      setCurrent(next)
      virtual.scrollToIndex(next)
    }
    const row = rows[current]
    if (event.key === 'Enter' && row !== undefined && event.target === event.currentTarget) onOpen?.(row)
  }
  return (
    <div className="table-frame">
      <div
        ref={box}
        className="table"
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        tabIndex={0}
        data-rows
        onKeyDown={move}
      >
        <div role="rowgroup" className="table-head">
          <div role="row" className="tr" style={{ gridTemplateColumns: tracks }}>
            {shown.map((column) => (
              <div key={column.key} role="columnheader" className="th" aria-sort={column.sort?.active ?? undefined}>
                {column.sort ? (
                  <button type="button" className="th-sort" onClick={column.sort.toggle}>
                    {column.title}
                    <span aria-hidden>{column.sort.active === 'ascending' ? ' ↑' : column.sort.active === 'descending' ? ' ↓' : ' ↕'}</span>
                  </button>
                ) : (
                  column.title
                )}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index]
            if (row === undefined) return null
            return (
              <Line
                key={rowKey(row)}
                row={row}
                index={item.index}
                start={item.start}
                height={rowHeight}
                tracks={tracks}
                columns={shown as readonly Column<unknown>[]}
                isCurrent={item.index === current}
                isChosen={isChosen?.(row) ?? false}
                onOpen={onOpen as ((row: unknown) => void) | undefined}
                onCurrent={setCurrent}
              />
            )
          })}
        </div>
      </div>
      {footer ? <div className="table-foot">{footer}</div> : null}
    </div>
  )
}

interface LineProps {
  row: unknown
  index: number
  start: number
  height: number
  tracks: string
  columns: readonly Column<unknown>[]
  isCurrent: boolean
  isChosen: boolean
  onOpen: ((row: unknown) => void) | undefined
  onCurrent: (index: number) => void
}

/** One row. While a table is scrolled those that were seen before are not rendered again. */
const Line = memo(function Line({ row, index, start, height, tracks, columns, isCurrent, isChosen, onOpen, onCurrent }: LineProps) {
  const classes = ['tr line', onOpen ? 'opens' : '', isCurrent ? 'current' : '', isChosen ? 'chosen' : '']
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={classes.join(' ')}
      style={{ gridTemplateColumns: tracks, height, top: start }}
      onClick={(event) => {
        onCurrent(index)
        if (!(event.target as Element).closest('a,button,label,input')) onOpen?.(row)
      }}
    >
      {columns.map((column) => (
        <div key={column.key} role="cell" className={column.look ? `td ${column.look}` : 'td'}>
          {column.render(row)}
        </div>
      ))}
    </div>
  )
})

/** Returns the width of the window, in CSS pixels. */
export function useWidth(): number {
  const [width, setWidth] = useState(innerWidth)
  useEffect(() => {
    const tell = (): void => setWidth(innerWidth)
    addEventListener('resize', tell)
    return () => removeEventListener('resize', tell)
  }, [])
  return width
}
