/** What gets slower, waits, fails, is late, and what it costs: from results that jobs make once a day. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Alert, Tabs } from 'antd'
import type { ReactNode } from 'react'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/insight'
import { useSettings } from '@/shared/settings'
import { Time } from '@/shared/time/Time'
import { Loading, PageHead } from '@/shared/ui/parts'
import { Choices } from './Choices'
import { daysBehind, dayText } from './days'
import './insight.css'
import { NotYet } from './NotYet'
import { newestResult } from './queries'
import { Cost } from './tabs/Cost'
import { Failures } from './tabs/Failures'
import { Lateness } from './tabs/Lateness'
import { Load } from './tabs/Load'
import { Overview } from './tabs/Overview'
import { Schedules } from './tabs/Schedules'
import { Slower } from './tabs/Slower'
import { Waits } from './tabs/Waits'
import { viewOf, type InsightSearch, type InsightTab, type TabProps, type View } from './view'

const OLD_DAYS = 2 // results of yesterday are made today

interface Props {
  project: string | undefined
  search: InsightSearch
  /** Changes the view. `isReplaced`: the way back does not lead to this one. */
  onSearch: (to: InsightSearch, isReplaced: boolean) => void
}

export function InsightPage({ project, search, onSearch }: Props) {
  const t = useT()
  const { data, error, refetch } = useQuery(newestResult)
  const newest = data?.items[0]
  if (newest) return <Results project={project} search={search} onSearch={onSearch} until={newest.day} storedAt={newest.stored_at} />
  return (
    <>
      <PageHead title={t('insight.title')} />
      {error ? <Trouble error={error} retry={() => void refetch()} /> : data ? <NotYet onAgain={() => void refetch()} /> : <Loading rows={12} />}
    </>
  )
}

function Results({ project, search, onSearch, until, storedAt }: Props & { until: string; storedAt: string }) {
  const t = useT()
  const view = viewOf(project, search, until)
  const tab = search.tab ?? 'overview'
  // To a workflow and to a cause one goes; the rest is another look at the same.
  const change = (to: InsightSearch): void => onSearch({ ...search, ...to }, !to.workflow && !to.cause)
  const props: TabProps = { view, search, onSearch: change }
  const of = (key: InsightTab, children: ReactNode) => ({ key, label: t(`insight.tab.${key}`), children: <div className="insight-tab">{children}</div> })
  return (
    <div className="insight">
      <PageHead title={t('insight.title')} crumbs={<Crumbs view={view} onAll={() => onSearch({ ...search, workflow: undefined }, false)} />}>
        <Choices project={project} view={view} onSearch={change} />
      </PageHead>
      <UpTo until={until} storedAt={storedAt} view={view} />
      <Tabs
        activeKey={tab}
        onChange={(key) => onSearch({ ...search, tab: key as InsightTab, sort: undefined, cause: undefined }, true)}
        destroyOnHidden
        items={[
          of('overview', <Overview {...props} onTab={(to) => onSearch({ ...search, tab: to, sort: undefined }, false)} />),
          of('slower', <Slower {...props} />),
          of('waits', <Waits {...props} />),
          of('failures', <Failures {...props} />),
          of('lateness', <Lateness {...props} />),
          of('load', <Load {...props} />),
          of('cost', <Cost {...props} />),
          of('schedules', <Schedules {...props} />),
        ]}
      />
    </div>
  )
}

function Crumbs({ view: { one, scope }, onAll }: { view: View; onAll: () => void }) {
  const t = useT()
  if (!one) return scope.project ?? t('shell.allProjects')
  return (
    <>
      <button type="button" className="link" onClick={onAll}>{t('insight.allWorkflows')}</button>
      <span aria-hidden>/</span>
      <Link to="/projects/$project/workflows/$name" params={{ project: one.project, name: one.name }}>{one.project}/{one.name}</Link>
    </>
  )
}

/** Up to when there are results, and which days are shown. */
function UpTo({ until, storedAt, view }: { until: string; storedAt: string; view: View }) {
  const t = useT()
  const { language } = useSettings()
  const behind = daysBehind(until, new Date().toISOString().slice(0, 10))
  const isOld = behind > OLD_DAYS
  const { from, to } = view.window
  return (
    <>
      <p className="dim small insight-until" data-until={until}>
        <span>{t('insight.window', { from: dayText(from, language, 'long'), to: dayText(to, language, 'long') })}</span>
        {isOld ? null : <span className="wide-only">{t('insight.until', { day: dayText(until, language) })} <Time at={storedAt} /></span>}
      </p>
      {isOld ? <Alert type="warning" showIcon title={t('insight.old', { day: dayText(until, language, 'long'), count: behind })} description={t('insight.old.text')} /> : null}
    </>
  )
}
