/** When an open run will end, and how that is beside what is usual. */
import { useQuery } from '@tanstack/react-query'
import type { InstanceDetail } from '@/api/types'
import { baseline as baselineOf } from '@/entities/queries'
import { hasEnded } from '@/entities/states'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { clockText, timeText } from '@/shared/time/format'
import { differenceText, secondsText } from '@/shared/time/seconds'
import { useNow, useZone } from '@/shared/time/Time'
import { outlookOf } from './outlook'

export function Expected({ run }: { run: InstanceDetail }) {
  const isOpen = !hasEnded(run.state) && (run.expected_end_at !== null || run.late_after_at !== null)
  return isOpen ? <Open run={run} /> : null
}

function Open({ run }: { run: InstanceDetail }) {
  const t = useT()
  const { language } = useSettings()
  const zone = useZone(run.timezone)
  const now = useNow()
  // What is usual for it does not change while it runs: one request.
  const { data } = useQuery({ ...baselineOf(run.id), staleTime: Infinity })
  const { endAt, laterS, isUsual, isSlow } = outlookOf(run, data?.run.usual ?? null, now)
  const clock = (at: string): string => clockText(at, zone, language)
  const than = laterS === null ? null : isUsual ? t('run.eta.usual') : t(laterS > 0 ? 'run.eta.later' : 'run.eta.earlier', { time: secondsText(laterS) })
  return (
    <span className={isSlow ? 'eta bad-text' : 'eta'} data-eta={endAt ?? ''} title={laterS === null ? undefined : differenceText(laterS)}>
      {endAt === null ? null : Date.parse(endAt) <= now ? <span>{t('run.eta.now')}</span> : <span><span className="dim">{t('run.eta')}</span> <time dateTime={endAt} className="num" title={timeText(endAt, zone, language)}>{clock(endAt)}</time></span>}
      {isSlow && run.late_after_at ? <span><span aria-hidden>▲</span> {t('run.eta.slow')} <time dateTime={run.late_after_at} className="num" title={timeText(run.late_after_at, zone, language)}>{clock(run.late_after_at)}</time></span> : than && endAt ? <span className={laterS !== null && laterS > 0 && !isUsual ? 'slower' : 'dim'}>{than}</span> : null}
    </span>
  )
}
