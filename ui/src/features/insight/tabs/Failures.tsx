/** What fails for the same cause, in all workflows. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { Button } from 'antd'
import type { FailureGroup } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { Time } from '@/shared/time/Time'
import { countText, percentText } from '@/shared/time/seconds'
import { Empty, Loading } from '@/shared/ui/parts'
import { SparkBars } from '../charts/Spark'
import { daysOf, dayText } from '../days'
import { failures as failuresOf } from '../queries'
import type { TabProps } from '../view'
import { Attempts } from './Attempts'

const PAGE = 25
const PLACES = 4 // seen at once

export function Failures({ view, search, onSearch }: TabProps) {
  const t = useT()
  const { language } = useSettings()
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(failuresOf(view.scope, PAGE))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={10} />
  const groups = data.pages.flatMap((page) => page.items)
  const total = data.pages[0]?.total ?? 0
  if (!groups.length) return <Empty title={t('insight.noFailures')}>{t('insight.noFailures.text')}</Empty>
  const days = daysOf(view.window.from, view.window.to)
  const chosen = groups.find((one) => one.fingerprint === search.cause)
  return (
    <>
      <p className="lead">{t('insight.failures.lead', { count: countText(total, language) })}</p>
      <ul className="causes">
        {groups.map((group) => <Group key={group.fingerprint} group={group} total={total} days={days} onOpen={() => onSearch({ cause: group.fingerprint })} onWorkflow={(workflow) => onSearch({ workflow, tab: 'failures' })} />)}
      </ul>
      {hasNextPage ? <Button loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t('common.more')}</Button> : null}
      {search.cause ? <Attempts key={search.cause} fingerprint={search.cause} sample={chosen?.sample ?? null} scope={view.scope} onClose={() => onSearch({ cause: undefined })} /> : null}
    </>
  )
}

function Group({ group, total, days, onOpen, onWorkflow }: { group: FailureGroup; total: number; days: readonly string[]; onOpen: () => void; onWorkflow: (workflow: string) => void }) {
  const t = useT()
  const { language } = useSettings()
  const byDay = new Map(group.by_day.map((one) => [one.day, one.count]))
  const rest = group.where.length - PLACES
  return (
    <li className="cause" data-cause={group.fingerprint}>
      <div className="cause-text">
        <p className="cause-sample mono">{group.sample}</p>
        <ul className="cause-places">
          {group.where.slice(0, PLACES).map((one) => (
            <li key={`${one.project}/${one.workflow}/${one.task}`}>
              <button type="button" className="link" onClick={() => onWorkflow(`${one.project}/${one.workflow}`)}><span className="dim">{one.project}/</span>{one.workflow}<span className="dim"> · </span><span className="mono">{one.task}</span></button>
              <span className="num dim"> {countText(one.count, language)}</span>
            </li>
          ))}
          {rest > 0 || group.is_more ? <li className="dim">{t('insight.more', { count: group.is_more ? `${rest}+` : rest })}</li> : null}
        </ul>
        <p className="dim small cause-times">
          <span>{t('insight.firstSeen')} <Time at={group.first_seen} /></span>
          <span>{t('insight.lastSeen')} <Time at={group.last_seen} /></span>
        </p>
      </div>
      <div className="cause-days">
        <SparkBars values={days.map((day) => byDay.get(day) ?? 0)} width={196} height={44} />
        <span className="hidden">{group.by_day.map((one) => `${one.day}: ${one.count}`).join(', ')}</span>
        <p className="dim small cause-edges" aria-hidden data-when><span>{dayText(days[0] ?? '', language)}</span><span>{dayText(days.at(-1) ?? '', language)}</span></p>
      </div>
      <div className="cause-count">
        <p className="tile-value num">{countText(group.count, language)}</p>
        <p className="dim small num">{t('insight.ofFailures', { share: percentText(total ? group.count / total : 0) })}</p>
        <Button size="small" onClick={onOpen}>{t('insight.attemptsOf')}</Button>
      </div>
    </li>
  )
}
