/**
 * When did it start failing? Tasks by runs, the newest run at the right, with what each attempt
 * became. Columns that are not seen are not mounted; the rows of many tasks are painted, all but
 * the chosen one. Arrows move, Enter opens.
 */
import { useInfiniteQuery, useQueryClient, type InfiniteData } from '@tanstack/react-query'
import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { Button } from 'antd'
import { memo, useEffect, useId, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import type { Grid } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { grid as gridOf } from '@/entities/queries'
import { hasEnded, lookOf } from '@/entities/states'
import { changesOf } from '@/live/apply'
import { tapEvents } from '@/live/live'
import { useNamed, useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { durationText, timeText } from '@/shared/time/format'
import { useNow, useZone } from '@/shared/time/Time'
import { useWidth } from '@/shared/ui/DataTable'
import { Empty, Loading } from '@/shared/ui/parts'
import { lastingMs, pictureOf, withState, type Cell, type Column, type Picture } from './grid'
import { ManyRows } from './ManyRows'
import './past.css'

const CELL = 24 // CSS pixels, both ways
const HEAD = 72
const MOST_ROWS = 60 // as elements of the page; more are painted
const HEADER = -1 // as a row: the runs themselves

interface Props {
  project: string
  name: string
  zone: string | undefined
  onOpen: (run: number, task?: string) => void
}

export function GridView({ project, name, zone, onOpen }: Props) {
  const t = useT()
  const options = gridOf(project, name)
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(options)
  useCells(project, name)
  const picture = useMemo(() => (data ? pictureOf(data.pages) : null), [data])
  if (error && !picture) return <Trouble error={error} retry={() => void refetch()} />
  if (!picture) return <Loading rows={10} />
  if (!picture.columns.length) return <Empty title={t('workflow.noRuns')} />
  return (
    <div className="stack grid-page">
      <Table tasks={picture.tasks} columns={picture.columns} zone={zone} label={t('grid.label', { name })} onOpen={onOpen} />
      <div className="row">
        {hasNextPage ? <Button size="small" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('grid.earlier')}</Button> : null}
        <span className="dim num" data-runs={picture.columns.length}>{t('grid.count', { runs: picture.columns.length, tasks: picture.tasks.length })}</span>
        <span className="grow" />
        <Legend columns={picture.columns} />
      </div>
    </div>
  )
}

/** Puts new states of attempts into the cells at once; what is fetched a moment later corrects them. */
function useCells(project: string, name: string): void {
  const queries = useQueryClient()
  useEffect(
    () =>
      tapEvents((events) => {
        const { tasks } = changesOf(events)
        if (!tasks.size) return
        queries.setQueryData<InfiniteData<Grid, string | null>>(gridOf(project, name).queryKey, (old) => {
          if (!old) return old
          const pages = old.pages.map((page) => [...tasks.values()].reduce(withState, page))
          return pages.some((page, index) => page !== old.pages[index]) ? { ...old, pages } : old
        })
      }),
    [queries, project, name],
  )
}

interface TableProps {
  tasks: readonly { name: string; isCurrent: boolean }[]
  columns: readonly Column[]
  zone: string | undefined
  label: string
  onOpen: Props['onOpen']
}

function Table({ tasks, columns, zone, label, onOpen }: TableProps) {
  const t = useT()
  const named = useNamed()
  const { language } = useSettings()
  const shown = useZone(zone)
  const box = useRef<HTMLDivElement>(null)
  const id = useId()
  const wide = useWidth() < 640 ? 120 : 220 // of the names
  const [active, setActive] = useState({ row: HEADER, column: columns.length - 1 })
  const now = useNow(columns.some((column) => !hasEnded(column.run.state)))
  const longest = Math.max(1, ...columns.map((column) => lastingMs(column.run, now) ?? 0))
  const isMany = tasks.length > MOST_ROWS
  const rows = useVirtualizer({ count: tasks.length, getScrollElement: () => box.current, estimateSize: () => CELL, overscan: 8, paddingStart: HEAD, scrollPaddingStart: HEAD, enabled: !isMany })
  const across = useVirtualizer({ horizontal: true, count: columns.length, getScrollElement: () => box.current, estimateSize: () => CELL, overscan: 8, paddingStart: wide, scrollPaddingStart: wide })
  // The newest runs are at the right. Earlier ones that come move what is seen by as much.
  const before = useRef(0)
  useLayoutEffect(() => {
    const added = columns.length - before.current
    if (box.current) box.current.scrollLeft = before.current ? box.current.scrollLeft + Math.max(0, added) * CELL : columns.length * CELL
    if (before.current && added > 0) setActive((old) => ({ ...old, column: old.column + added }))
    before.current = columns.length
  }, [columns.length])
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -columns.length], End: [0, columns.length] }[event.key]
    if (step) {
      event.preventDefault()
      const row = Math.min(tasks.length - 1, Math.max(HEADER, active.row + (step[0] ?? 0)))
      const column = Math.min(columns.length - 1, Math.max(0, active.column + (step[1] ?? 0)))
      setActive({ row, column })
      if (row >= 0 && !isMany) rows.scrollToIndex(row)
      if (row >= 0 && isMany && box.current) {
        const { scrollTop, clientHeight } = box.current
        box.current.scrollTop = Math.min(row * CELL, Math.max(scrollTop, (row + 1) * CELL - clientHeight + HEAD))
      }
      across.scrollToIndex(column)
    }
    if (event.key === 'Enter') open(active.row, active.column)
  }
  const open = (row: number, column: number): void => {
    const run = columns[column]?.run
    const task = tasks[row]?.name
    if (run) onOpen(run.id, task !== undefined && columns[column]?.states.has(task) ? task : undefined)
  }
  // Rows keep what they were given: the function that they call is always the newest.
  const newest = useRef(open)
  useEffect(() => {
    newest.current = open
  })
  const [opening] = useState(() => (row: number, column: number) => newest.current(row, column))
  const items = across.getVirtualItems()
  const cellId = (row: number, column: number): string => `${id}-${row}-${column}`
  const sheet = useMemo(() => ({ cell: CELL, head: HEAD, wide }), [wide])
  const lines = isMany ? [Math.max(0, active.row)] : rows.getVirtualItems().map((line) => line.index)
  const textOf = ({ row, column }: Cell): string => {
    const [task, one] = [tasks[row], columns[column]]
    if (!task || !one) return task ? (task.isCurrent ? task.name : `${task.name}: ${t('grid.gone')}`) : ''
    const state = one.states.get(task.name)
    return `${task.name} · #${one.run.id} · ${state ? named('state', state) : t('grid.none')}`
  }
  const mark = (row: number, column: number): string => (row === active.row && column === active.column ? ' active' : '')
  const told = (one: Column): string => {
    const ms = lastingMs(one.run, now)
    return [`#${one.run.id}`, named('state', one.run.state), timeText(one.run.logical_time, shown, language), `v${one.run.version}`, ...(ms === null ? [] : [durationText(ms)])].join(' · ')
  }
  return (
    <div
      ref={box}
      className="grid-box"
      role="grid"
      aria-label={label}
      aria-rowcount={tasks.length + 1}
      aria-colcount={columns.length + 1}
      aria-activedescendant={cellId(active.row, active.column)}
      tabIndex={0}
      onKeyDown={move}
    >
      <div className="grid-sheet" style={{ width: wide + columns.length * CELL, height: HEAD + tasks.length * CELL }}>
        <div role="row" aria-rowindex={1} className="grid-head" style={{ height: HEAD, width: wide + columns.length * CELL }}>
          <div role="columnheader" className="grid-name grid-corner" style={{ width: wide }}>{t('common.tasks')}</div>
          {items.map((item) => {
            const one = columns[item.index]
            if (!one) return null
            const ms = lastingMs(one.run, now)
            return (
              <div
                key={one.run.id}
                id={cellId(HEADER, item.index)}
                role="columnheader"
                aria-colindex={item.index + 2}
                aria-label={told(one)}
                title={told(one)}
                className={`grid-run tone-${lookOf(one.run.state).tone}${one.isNewVersion ? ' new-version' : ''}${mark(HEADER, item.index)}`}
                data-run={one.run.id}
                style={{ left: item.start, width: CELL, height: HEAD }}
                onClick={() => onOpen(one.run.id)}
              >
                {one.isNewVersion ? <span className="grid-version">v{one.run.version}</span> : null}
                <span className="grid-bar" style={{ height: ms === null ? 2 : Math.max(2, (ms / longest) * 44) }} />
              </div>
            )
          })}
        </div>
        {isMany ? <ManyRows box={box} tasks={tasks} columns={columns} sheet={sheet} onOpen={opening} textOf={textOf} /> : null}
        {lines.map((index) => {
          const task = tasks[index]
          if (!task) return null
          return <Line key={task.name} id={id} task={task} index={index} top={HEAD + index * CELL} wide={wide} columns={columns} items={items} active={index === active.row ? active.column : -1} onOpen={opening} />
        })}
      </div>
    </div>
  )
}

interface LineProps {
  id: string
  task: Picture['tasks'][number]
  index: number
  top: number
  wide: number
  columns: readonly Column[]
  items: readonly VirtualItem[]
  active: number // the column of the chosen cell; -1: it is not in this row
  onOpen: (row: number, column: number) => void
}

/** One task. While the grid is scrolled down those that were seen before are not rendered again. */
const Line = memo(function Line({ id, task, index, top, wide, columns, items, active, onOpen }: LineProps) {
  const t = useT()
  const named = useNamed()
  return (
    <div role="row" aria-rowindex={index + 2} className="grid-row" style={{ top, height: CELL }}>
      <div role="rowheader" className={`grid-name mono${task.isCurrent ? '' : ' gone'}`} style={{ width: wide }} title={task.isCurrent ? task.name : `${task.name}: ${t('grid.gone')}`}>
        <span className="cut">{task.name}</span>
      </div>
      {items.map((item) => {
        const one = columns[item.index]
        if (!one) return null
        const state = one.states.get(task.name)
        const text = `${task.name} · #${one.run.id} · ${state ? named('state', state) : t('grid.none')}`
        return (
          <div
            key={one.run.id}
            id={`${id}-${index}-${item.index}`}
            role="gridcell"
            aria-colindex={item.index + 2}
            aria-label={text}
            title={text}
            data-state={state}
            className={`grid-cell${state ? ` tone-${lookOf(state).tone}` : ''}${one.isNewVersion ? ' new-version' : ''}${item.index === active ? ' active' : ''}`}
            style={{ left: item.start, width: CELL, height: CELL }}
            onClick={() => onOpen(index, item.index)}
          >
            {state ? <span className="glyph" aria-hidden>{lookOf(state).glyph}</span> : null}
          </div>
        )
      })}
    </div>
  )
})

/** Explains the glyphs that there are. */
function Legend({ columns }: { columns: readonly Column[] }) {
  const named = useNamed()
  const states = [...new Set(columns.flatMap((column) => [...column.states.values()]))].sort()
  return (
    <ul className="legend">
      {states.map((state) => (
        <li key={state} className={`tone-${lookOf(state).tone}`}>
          <span className="glyph" aria-hidden>{lookOf(state).glyph}</span> {named('state', state)}
        </li>
      ))}
    </ul>
  )
}
