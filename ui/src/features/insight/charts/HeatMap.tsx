/** Hours of the week as a table of coloured cells; arrow keys go from cell to cell. */
import { useState, type KeyboardEvent } from 'react'
import { useSettings } from '@/shared/settings'
import { weekdayText } from '../days'

export interface Cell {
  weekday: number // 0: Monday
  hour: number
  value: number
  said: string // all that is known of it
}

interface Props {
  label: string
  cells: readonly Cell[]
  valueText: (value: number) => string
  hint: string
}

const HOURS = Array.from({ length: 24 }, (_, hour) => hour)
const WEEK = [0, 1, 2, 3, 4, 5, 6]

export function HeatMap({ label, cells, valueText, hint }: Props) {
  const { language } = useSettings()
  const [at, setAt] = useState<{ weekday: number; hour: number } | null>(null)
  const byPlace = new Map(cells.map((cell) => [cell.weekday * 24 + cell.hour, cell]))
  const most = Math.max(...cells.map((cell) => cell.value), 0)
  const chosen = at ? byPlace.get(at.weekday * 24 + at.hour) : undefined
  const move = (event: KeyboardEvent): void => {
    const [down, right] = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key] ?? []
    if (event.key === 'Escape') setAt(null)
    if (down === undefined || right === undefined) return
    event.preventDefault()
    setAt((old) => (old ? { weekday: Math.min(6, Math.max(0, old.weekday + down)), hour: Math.min(23, Math.max(0, old.hour + right)) } : { weekday: 0, hour: 0 }))
  }
  return (
    <div className="heat-frame">
      <div className="heat-box" tabIndex={0} role="group" aria-label={label} onKeyDown={move} onPointerLeave={() => setAt(null)} onBlur={() => setAt(null)}>
        <table className="heat">
          <caption className="hidden">{label}</caption>
          <thead>
            <tr>
              <td />
              {HOURS.map((hour) => <th key={hour} scope="col" className="num">{hour % 3 === 0 ? String(hour).padStart(2, '0') : <span className="hidden">{hour}</span>}</th>)}
            </tr>
          </thead>
          <tbody>
            {WEEK.map((weekday) => (
              <tr key={weekday}>
                <th scope="row" data-when>{weekdayText(weekday, language)}</th>
                {HOURS.map((hour) => {
                  const cell = byPlace.get(weekday * 24 + hour)
                  const share = cell && most > 0 ? cell.value / most : 0
                  const isAt = at?.weekday === weekday && at.hour === hour
                  return (
                    <td
                      key={hour}
                      className={`heat-cell num ${isAt ? 'here' : ''} ${cell ? '' : 'unknown'}`}
                      style={{ '--heat': share } as React.CSSProperties}
                      title={cell?.said}
                      onPointerEnter={() => setAt({ weekday, hour })}
                    >
                      <span className="heat-value">{cell ? valueText(cell.value) : '–'}</span>
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="heat-said small" role="status">{chosen ? chosen.said : <span className="dim">{hint}</span>}</p>
    </div>
  )
}
