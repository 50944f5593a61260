/** How many dates of a backfill are in which state, as one bar. */
import type { Backfill } from '@/api/types'
import { lookOf } from '@/entities/states'
import { useNamed, useT } from '@/shared/i18n'

export const DATE_STATES = ['SUCCEEDED', 'FAILED', 'CANCELLED', 'STARTED', 'WAITING', 'SKIPPED'] as const

export function Counts({ backfill, isBare = false }: { backfill: Backfill; isBare?: boolean }) {
  const t = useT()
  const named = useNamed()
  const { counts, total } = backfill
  const of = (state: string): number => counts[state] ?? 0
  const done = total - of('WAITING') - of('STARTED')
  const text = t('backfill.progress', { done, total })
  const parts = DATE_STATES.filter((state) => of(state) > 0)
  return (
    <span className="counts" title={parts.map((state) => `${named('state', state)}: ${of(state)}`).join(' · ')}>
      <span className="counts-bar" role="img" aria-label={text}>
        {parts.map((state) => <span key={state} className={`tone-${lookOf(state).tone}`} style={{ flexGrow: of(state) }} />)}
      </span>
      <span className="num small">{isBare ? `${done} / ${total}` : text}</span>
    </span>
  )
}
