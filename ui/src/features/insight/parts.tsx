/** What several tabs show: numbers beside those before, names, bars, failures to fetch. */
import { Select } from 'antd'
import type { ReactNode } from 'react'
import type { InsightSort } from '@/api/types'
import { useT } from '@/shared/i18n'
import { growthText } from '@/shared/time/seconds'
import { SORTS } from './view'

export type Direction = 'less is better' | 'more is better' | 'neither'

/** A number, by how much it differs from the one before, and that one. */
export function Tile({ label, value, now, before, beforeText, better = 'neither', children }: { label: string; value: string; now: number | null; before: number | null; beforeText: string; better?: Direction; children?: ReactNode }) {
  const t = useT()
  return (
    <div className="tile">
      <p className="tile-label">{label}</p>
      <p className="tile-value num">{value}</p>
      <p className="tile-foot small"><Growth now={now} before={before} better={better} /> <span className="dim num">{beforeText ? t('insight.before', { value: beforeText }) : null}</span></p>
      {children ? <div className="tile-picture">{children}</div> : null}
    </div>
  )
}

const NOISE = 0.05 // less than that says nothing

/** Growth with an arrow: what it means is told by the colour as well, never by it alone. */
export function Growth({ now, before, better = 'neither' }: { now: number | null; before: number | null; better?: Direction }) {
  const text = growthText(now, before)
  if (text === null || now === null || before === null) return null
  const share = before ? now / before - 1 : 0
  const isSmall = Math.abs(share) < NOISE
  const isGood = better === 'more is better' ? share > 0 : share < 0
  const look = better === 'neither' || isSmall ? 'dim' : isGood ? 'faster' : 'slower'
  return <span className={`num ${look}`}><span aria-hidden>{isSmall ? '→' : share > 0 ? '▲' : '▼'}</span> {text}</span>
}

/** A name that opens the workflow here. */
export function WorkflowName({ project, workflow, onOpen }: { project: string; workflow: string; onOpen: () => void }) {
  return (
    <button type="button" className="link cut insight-name" onClick={onOpen} title={`${project}/${workflow}`}>
      <span className="dim">{project}/</span>{workflow}
    </button>
  )
}

/** A share of something as a bar with its text. */
export function ShareBar({ share, text, look = '' }: { share: number; text: ReactNode; look?: string }) {
  return (
    <span className="share">
      <span className="share-track" aria-hidden><span className={`share-bar ${look}`} style={{ width: `${Math.min(100, Math.max(share > 0 ? 1.5 : 0, 100 * share)).toFixed(1)}%` }} /></span>
      <span className="num share-text">{text}</span>
    </span>
  )
}

/** Growth to the right of a middle line, less to its left. `share`: of the largest, -1 to 1. */
export function DifferenceBar({ share, text }: { share: number; text: ReactNode }) {
  const size = `${(50 * Math.min(1, Math.abs(share))).toFixed(1)}%`
  return (
    <span className="difference">
      <span className="difference-track" aria-hidden><span className={share > 0 ? 'difference-bar longer' : 'difference-bar'} style={{ width: size, ...(share > 0 ? { left: '50%' } : { right: '50%' }) }} /></span>
      <span className="num difference-text">{text}</span>
    </span>
  )
}

export function SortChoice({ value, onSort }: { value: InsightSort; onSort: (sort: InsightSort) => void }) {
  const t = useT()
  return (
    <span className="row">
      <span className="dim small" id="insight-sort">{t('insight.sort')}</span>
      <Select<InsightSort> size="small" className="insight-sort" aria-labelledby="insight-sort" value={value} onChange={onSort} options={SORTS.map((sort) => ({ value: sort, label: t(`insight.sort.${sort}`) }))} />
    </span>
  )
}

/** Two lines in a cell: a number, and the one before. */
export function Pair({ now, before }: { now: string; before: string }) {
  const t = useT()
  return (
    <span className="two-lines">
      <span className="num">{now}</span>
      <span className="num dim small">{t('insight.before', { value: before })}</span>
    </span>
  )
}
