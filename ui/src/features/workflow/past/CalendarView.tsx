/** Which days are missing? A year of days; a day that is chosen says what ran, and what can be done. */
import { LeftOutlined, RightOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import type { Day } from '@/api/types'
import { useRows } from '@/entities/lists'
import { Act, StateMark, Trouble, useRefusal } from '@/entities/marks'
import { runs as runsOf, yearDays } from '@/entities/queries'
import { RunTable } from '@/entities/RunTable'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { instantOf } from '@/shared/time/format'
import { Empty, Loading, Panel } from '@/shared/ui/parts'
import { dayAfter, neighbour, yearOf, type Cell, type Kind } from './calendar'
import './past.css'

const GLYPHS: Record<Kind, string> = { none: '', good: '✓', bad: '✕', missing: '!', open: '▶' }
const TONES: Record<Kind, string> = { none: '', good: 'tone-succeeded', bad: 'tone-failed', missing: 'tone-retry', open: 'tone-running' }
const KINDS = ['good', 'bad', 'missing', 'open'] as const
const SIZE = 17 // of a day, in CSS pixels, with its gap

interface Props {
  project: string
  name: string
  zone: string
  year: number | undefined
  day: string | undefined
  onView: (to: { year?: number | undefined; day?: string | undefined }) => void
  onRun: (id: number) => void
  onPlan: (day: string) => void
}

export function CalendarView({ project, name, zone, year, day, onView, onRun, onPlan }: Props) {
  const t = useT()
  const today = new Date().toLocaleDateString('en-CA', { timeZone: zone }) // YYYY-MM-DD
  const present = Number(today.slice(0, 4))
  const shown = year ?? present
  const list = useRows(yearDays(project, name, shown))
  const { more, hasMore } = list
  useEffect(() => {
    if (hasMore) more() // a page ends earlier where there is much to count
  }, [hasMore, more])
  const cells = useMemo(() => yearOf(shown, list.rows), [shown, list.rows])
  const chosen = cells.find((cell) => cell.date === day)
  if (list.error && !list.rows.length) return <Trouble error={list.error} retry={list.again} />
  return (
    <div className="stack calendar-page">
      <div className="row">
        <Button size="small" icon={<LeftOutlined />} aria-label={t('calendar.before')} onClick={() => onView({ year: shown - 1, day: undefined })} />
        <h2 className="num" data-year={shown}>{shown}</h2>
        <Button size="small" icon={<RightOutlined />} aria-label={t('calendar.after')} disabled={shown >= present} onClick={() => onView({ year: shown + 1, day: undefined })} />
        <span className="grow" />
        <ul className="legend">
          {KINDS.map((kind) => (
            <li key={kind} className={TONES[kind]}><span className="glyph" aria-hidden>{GLYPHS[kind]}</span> {t(`calendar.${kind}`)}</li>
          ))}
        </ul>
      </div>
      <Year key={shown} cells={cells} begin={day ?? today} chosen={day} busy={list.isPending || hasMore} onChoose={(date) => onView({ day: date })} />
      {chosen ? <OneDay key={chosen.date} cell={chosen} project={project} name={name} zone={zone} onRun={onRun} onPlan={onPlan} /> : <p className="dim">{t('calendar.hint', { zone })}</p>}
    </div>
  )
}

function Year({ cells, begin, chosen, busy, onChoose }: { cells: readonly Cell[]; begin: string; chosen: string | undefined; busy: boolean; onChoose: (date: string) => void }) {
  const t = useT()
  const { language } = useSettings()
  const id = useId()
  const frame = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(() => Math.max(0, cells.findIndex((cell) => cell.date === begin)))
  const week = cells[active]?.week ?? 0
  useEffect(() => {
    const box = frame.current
    if (!box) return
    const left = 40 + week * SIZE
    if (left - SIZE < box.scrollLeft || left + 2 * SIZE > box.scrollLeft + box.clientWidth) box.scrollLeft = left - box.clientWidth / 2
  }, [week])
  const locale = language === 'zh' ? 'zh-CN' : 'en-GB'
  const text = (date: string, options: Intl.DateTimeFormatOptions): string => new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' }).format(new Date(`${date}T00:00:00Z`))
  const move = (event: KeyboardEvent): void => {
    const next = neighbour(cells, active, event.key)
    if (next !== active || event.key.startsWith('Arrow')) event.preventDefault()
    setActive(next)
    const cell = cells[next]
    if (event.key === 'Enter' && cell) onChoose(cell.date)
  }
  const weeks = (cells.at(-1)?.week ?? 0) + 1
  return (
    <div ref={frame} className="calendar-frame">
      <div role="grid" tabIndex={0} aria-label={t('calendar.label')} aria-busy={busy} aria-activedescendant={`${id}-${active}`} className="calendar" style={{ width: 40 + weeks * SIZE, height: 24 + 7 * SIZE }} onKeyDown={move}>
        {cells.filter((cell) => cell.date.endsWith('-01')).map((cell) => (
          <time key={cell.date} dateTime={cell.date.slice(0, 7)} aria-hidden className="calendar-month" style={{ left: 40 + cell.week * SIZE }}>{text(cell.date, { month: 'short' })}</time>
        ))}
        {Array.from({ length: 7 }, (_, weekday) => (
          <div key={weekday} role="row">
            <div role="rowheader" className="calendar-weekday" style={{ top: 24 + weekday * SIZE }}><time>{text(`2024-01-0${weekday + 1}`, { weekday: 'short' })}</time></div>
            {cells.map((cell, index) =>
              cell.weekday === weekday ? (
                <div
                  key={cell.date}
                  id={`${id}-${index}`}
                  role="gridcell"
                  aria-selected={cell.date === chosen}
                  aria-label={[text(cell.date, { dateStyle: 'long' }), cell.kind === 'none' ? t('calendar.nothing') : t(`calendar.${cell.kind}`)].join(', ')}
                  title={text(cell.date, { dateStyle: 'full' })}
                  data-date={cell.date}
                  data-kind={cell.kind}
                  className={`calendar-day ${TONES[cell.kind]}${index === active ? ' active' : ''}${cell.date === chosen ? ' chosen' : ''}`}
                  style={{ left: 40 + cell.week * SIZE, top: 24 + weekday * SIZE }}
                  onClick={() => {
                    setActive(index)
                    onChoose(cell.date)
                  }}
                >
                  <span aria-hidden>{GLYPHS[cell.kind]}</span>
                </div>
              ) : null,
            )}
          </div>
        ))}
      </div>
    </div>
  )
}

function OneDay({ cell, project, name, zone, onRun, onPlan }: { cell: Cell; project: string; name: string; zone: string; onRun: (id: number) => void; onPlan: (day: string) => void }) {
  const t = useT()
  const refusal = useRefusal('run.operate', project)
  const since = instantOf(`${cell.date}T00:00`, zone) ?? undefined
  const until = instantOf(`${dayAfter(cell.date)}T00:00`, zone) ?? undefined
  const list = useRows(runsOf({ project, workflow: name, logical_since: since, logical_until: until, sort: '-logical_time' }))
  return (
    <Panel title={<span className="num" data-chosen={cell.date}>{cell.date}</span>} aside={<Act size="small" refusal={refusal} onClick={() => onPlan(cell.date)}>{t('calendar.backfill')}</Act>}>
      <div className="stack">
        <Counts day={cell.day} />
        {list.error ? <Trouble error={list.error} retry={list.again} /> : null}
        {list.isPending ? <Loading rows={3} /> : list.rows.length ? <RunTable bare rows={list.rows} onOpen={onRun} onEnd={list.more} footer={<span className="dim num">{t('common.rows', { count: list.rows.length })}{list.hasMore ? ' +' : ''}</span>} /> : <Empty title={t('calendar.noRuns')} />}
      </div>
    </Panel>
  )
}

function Counts({ day }: { day: Day | undefined }) {
  const t = useT()
  if (!day) return null
  const states = Object.entries(day.states).filter(([, count]) => count > 0)
  return (
    <div className="row">
      {states.map(([state, count]) => (
        <span key={state} className="row"><StateMark state={state} /><span className="num">{count}{day.is_more ? '+' : ''}</span></span>
      ))}
      {day.missing ? <span className="tone-retry state" data-missing={day.missing}>{t('calendar.missingCount', { count: day.missing })}</span> : null}
    </div>
  )
}
