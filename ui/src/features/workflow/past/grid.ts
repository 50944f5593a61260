/** Runs by tasks, as pages of the API say it, put together. Pure. */
import type { Grid, GridRun } from '@/api/types'

export interface Column {
  run: GridRun
  /** States by name of the task; what is not there has no attempt. */
  states: ReadonlyMap<string, string>
  /** Whether the run before it, to the left, ran another version. */
  isNewVersion: boolean
}

export interface Picture {
  tasks: readonly { name: string; isCurrent: boolean }[]
  columns: readonly Column[] // the oldest first
}

/** Returns one picture of pages, of which the first has the newest runs. Each has a list of tasks of its own. */
export function pictureOf(pages: readonly Grid[]): Picture {
  const tasks = new Map<string, boolean>()
  const columns: Column[] = []
  for (const page of pages) {
    for (const task of page.tasks) if (!tasks.has(task.name)) tasks.set(task.name, task.is_current)
    const stateOf = new Map(page.legend.map((one) => [one.cell, one.state]))
    for (const run of page.runs) {
      const states = new Map<string, string>()
      page.tasks.forEach((task, index) => {
        const state = stateOf.get(run.cells[index] ?? '')
        if (state) states.set(task.name, state)
      })
      columns.push({ run, states, isNewVersion: false })
    }
  }
  columns.reverse()
  return {
    tasks: [...tasks].map(([name, isCurrent]) => ({ name, isCurrent })),
    columns: columns.map((column, index) => ({ ...column, isNewVersion: index > 0 && columns[index - 1]?.run.version !== column.run.version })),
  }
}

/** Returns how long a run took or has taken, in ms; null: it has not begun. */
export function lastingMs(run: GridRun, now: number): number | null {
  if (run.started_at === null) return null
  return (run.finished_at === null ? now : Date.parse(run.finished_at)) - Date.parse(run.started_at)
}

/** Returns a page with the new state of an attempt in it; the same object if it is about none of its runs. */
export function withState(page: Grid, change: { instance: number | null; task: string; state: string }): Grid {
  const column = page.tasks.findIndex((task) => task.name === change.task)
  const cell = page.legend.find((one) => one.state === change.state)?.cell
  if (column < 0 || cell === undefined || !page.runs.some((run) => run.id === change.instance)) return page
  const put = (cells: string): string => cells.slice(0, column) + cell + cells.slice(column + 1)
  return { ...page, runs: page.runs.map((run) => (run.id === change.instance ? { ...run, cells: put(run.cells) } : run)) }
}

/** How a grid is laid out, in CSS pixels: its cells, the heads of its columns, and the names of its rows. */
export interface Sheet {
  cell: number
  head: number
  wide: number
}

export interface Cell {
  row: number
  column: number // -1: the name of the row
}

/** Returns the cell at a point of what is seen below the heads; null: there is none. */
export function cellAt(point: { x: number; y: number }, scrolled: { x: number; y: number }, { cell, wide }: Sheet, size: { rows: number; columns: number }): Cell | null {
  const row = Math.floor((point.y + scrolled.y) / cell)
  if (row < 0 || row >= size.rows) return null
  if (point.x < wide) return { row, column: -1 }
  const column = Math.floor((point.x - wide + scrolled.x) / cell)
  return column < size.columns ? { row, column } : null
}
