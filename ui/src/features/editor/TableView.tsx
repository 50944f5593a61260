/**
 * Tasks as rows, fields as columns, edited in place: many at once.
 *
 * Ctrl+D fills the cell's value down the chosen rows; cells of a spreadsheet are pasted as they are;
 * Alt+arrows move a row.
 */
import { useVirtualizer } from '@tanstack/react-virtual'
import { Checkbox } from 'antd'
import { useRef, type ClipboardEvent, type KeyboardEvent } from 'react'
import { textsOf, type Parsed, type TaskModel } from '@/definition/parse'
import { moveTask, NAME, rename, setField, taskNamed } from '@/definition/tasks'
import { withRenamed } from '@/graph/groups'
import { useT } from '@/shared/i18n'
import { BufferedInput } from '@/shared/schema-form/BufferedInput'
import type { Schema } from '@/shared/schema-form/schema'
import { problemAt, type Trouble } from './problems'
import type { Session, SessionState } from './session'

interface Column {
  name: string
  width: string
  options?: readonly string[]
  isNumber?: boolean
  isList?: boolean
}

const RUN_WHEN = ['', 'all_success', 'all_done', 'one_success', 'any_failed', 'always']
const ROW = 34

interface Props {
  session: Session
  state: SessionState
  selected: readonly string[]
  onSelect: (names: readonly string[]) => void
  troubles: readonly Trouble[]
  types: ReadonlyMap<string, Schema>
  onTell: (error: unknown) => void
}

export function TableView({ session, state, selected, onSelect, troubles, types, onTell }: Props) {
  const t = useT()
  const box = useRef<HTMLDivElement>(null)
  const { tasks } = state.good
  const isFrozen = state.refusal !== null || state.parsed.mistakes.length > 0
  const columns: Column[] = [
    { name: 'name', width: 'minmax(140px, 1.4fr)' },
    { name: 'type', width: '130px', options: [...types.keys()] },
    { name: 'depends_on', width: 'minmax(150px, 1.6fr)', isList: true },
    { name: 'run_when', width: '120px', options: RUN_WHEN },
    { name: 'worker_group', width: '110px' },
    { name: 'concurrency_group', width: '130px' },
    { name: 'retries', width: '70px', isNumber: true },
    { name: 'retry_delay', width: '90px' },
    { name: 'timeout', width: '90px' },
    { name: 'enabled', width: '90px', options: ['', 'true', 'false'] },
  ]
  const tracks = `34px ${columns.map((one) => one.width).join(' ')}`
  const virtual = useVirtualizer({ count: tasks.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 16 })
  const attempt = (act: () => void): void => {
    try {
      act()
    } catch (error) {
      onTell(error)
    }
  }
  const put = (cells: readonly [task: string, column: Column, text: string][]): void =>
    attempt(() => {
      const renamed = new Map<string, string>()
      session.change('edit.table.change', (parsed) => cells.reduce((now, [task, column, text]) => written(now, renamed.get(task) ?? task, column, text, renamed), parsed), {
        places: (shown) => Object.fromEntries(Object.entries(shown).map(([name, at]) => [renamed.get(name) ?? name, at])),
        groups: (groups) => (renamed.size ? withRenamed(groups, renamed) : groups),
      })
      if (renamed.size) onSelect(selected.map((name) => renamed.get(name) ?? name))
    })
  const pasteInto = (event: ClipboardEvent, row: number, column: number): void => {
    const text = event.clipboardData.getData('text/plain').replace(/\r?\n$/, '')
    if (!/[\t\n]/.test(text) || isFrozen) return
    event.preventDefault()
    put(text.split(/\r?\n/).flatMap((line, down) => line.split('\t').flatMap((cell, right): [string, Column, string][] => {
      const [task, own] = [tasks[row + down], columns[column + right]]
      return task && own ? [[task.name, own, cell]] : []
    })))
  }
  const press = (event: KeyboardEvent, row: number, column: number): void => {
    const task = tasks[row]
    const own = columns[column]
    if (!task || !own) return
    const go = (down: number, right: number): void => {
      event.preventDefault()
      box.current?.querySelector<HTMLElement>(`[data-cell="${row + down}:${column + right}"] :is(input, select)`)?.focus()
    }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'd') {
      event.preventDefault()
      const rows = selected.length > 1 ? selected : tasks[row + 1] ? [task.name, tasks[row + 1]?.name ?? ''] : []
      if (own.name !== 'name' && !isFrozen) put(rows.filter((name) => name !== task.name).map((name) => [name, own, shown(task, own)]))
    } else if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
      event.preventDefault()
      const by = event.key === 'ArrowUp' ? -1 : 1
      attempt(() => session.change('edit.order', (parsed) => moveTask(parsed, task.name, by)))
      setTimeout(() => go(by, 0), 0)
    } else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      if ((event.target as HTMLElement).tagName === 'INPUT') go(event.key === 'ArrowUp' ? -1 : 1, 0)
    } else if (event.key === 'Enter') go(1, 0)
  }
  return (
    <div ref={box} className="task-table" role="grid" aria-label={t('edit.table')} aria-rowcount={tasks.length + 1}>
      <div className="task-row task-row-head" role="row" style={{ gridTemplateColumns: tracks }}>
        <span role="columnheader"><Checkbox aria-label={t('table.all')} checked={selected.length > 0 && selected.length === tasks.length} indeterminate={selected.length > 0 && selected.length < tasks.length} onChange={(event) => onSelect(event.target.checked ? tasks.map((one) => one.name) : [])} /></span>
        {columns.map((one) => <span key={one.name} role="columnheader"><code>{one.name}</code></span>)}
      </div>
      <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {virtual.getVirtualItems().map((item) => {
          const task = tasks[item.index]
          if (!task) return null
          const isChosen = selected.includes(task.name)
          return (
            <div key={task.index} role="row" aria-rowindex={item.index + 2} aria-selected={isChosen} className={isChosen ? 'task-row chosen' : 'task-row'} style={{ gridTemplateColumns: tracks, transform: `translateY(${item.start}px)`, height: ROW }}>
              <span role="gridcell"><Checkbox aria-label={t('table.choose', { name: task.name })} checked={isChosen} onChange={(event) => onSelect(event.target.checked ? [...selected, task.name] : selected.filter((name) => name !== task.name))} /></span>
              {columns.map((column, at) => {
                const problem = problemAt(troubles, ['tasks', task.index, column.name])
                const label = `${task.name} ${column.name}`
                const value = shown(task, column)
                return (
                  <span key={column.name} role="gridcell" data-cell={`${item.index}:${at}`} className={problem ? 'bad' : undefined} title={problem} onKeyDown={(event) => press(event, item.index, at)} onPaste={(event) => pasteInto(event, item.index, at)}>
                    {column.options ? (
                      <select aria-label={label} disabled={isFrozen} value={value} onChange={(event) => put([[task.name, column, event.target.value]])}>
                        {[...new Set([...column.options, value])].map((one) => <option key={one} value={one}>{one || '–'}</option>)}
                      </select>
                    ) : (
                      <BufferedInput isLate label={label} value={value} isDisabled={isFrozen} mistakeOf={(text) => (column.name === 'name' ? (!NAME.test(text) ? t('task.badName') : taskNamed(state.good, text) ? t('task.taken') : null) : null)} onCommit={(text) => put([[task.name, column, text]])} />
                    )}
                  </span>
                )
              })}
            </div>
          )
        })}
      </div>
      <p className="dim small pad">{t('table.keys')}</p>
    </div>
  )
}

function shown(task: TaskModel, column: Column): string {
  const value = task.value[column.name]
  if (column.isList) return textsOf(value).join(', ')
  return value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns the text with a cell as it was written; what is empty is taken out. */
function written(parsed: Parsed, task: string, column: Column, text: string, renamed: Map<string, string>): Parsed {
  const value = text.trim()
  if (column.name === 'name') {
    if (!NAME.test(value) || taskNamed(parsed, value)) return parsed
    renamed.set(task, value)
    return rename(parsed, task, value)
  }
  if (column.name === 'type' && !value) return parsed
  if (!value) return setField(parsed, task, [column.name], undefined)
  if (column.isList) return setField(parsed, task, [column.name], value.split(/[\s,]+/).filter(Boolean))
  if (column.name === 'enabled') return setField(parsed, task, ['enabled'], value !== 'false')
  if (column.isNumber && Number.isFinite(Number(value))) return setField(parsed, task, [column.name], Number(value))
  return setField(parsed, task, [column.name], value)
}
