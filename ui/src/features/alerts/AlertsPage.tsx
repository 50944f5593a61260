/** Who is told of what: what has happened, the messages about it, and what a project defines for that. */
import { useQuery } from '@tanstack/react-query'
import { Select, Tabs } from 'antd'
import { useMemo, useState } from 'react'
import type { Alert, AlertDelivery } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { projects as projectsOf } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/alerts'
import { Empty, Loading, PageHead } from '@/shared/ui/parts'
import './alerts.css'
import { Channels } from './channels/Channels'
import { AlertDrawer } from './history/AlertDrawer'
import { History } from './history/History'
import { Messages } from './history/Messages'
import { Receivers } from './receivers/Receivers'
import { Rules } from './rules/Rules'
import { SilenceForm, type Covered } from './silences/SilenceForm'
import { Silences } from './silences/Silences'
import { Why } from './why/Why'

export const ALERT_TABS = ['history', 'messages', 'rules', 'receivers', 'channels', 'silences', 'why'] as const
export type AlertTab = (typeof ALERT_TABS)[number]

export interface AlertSearch {
  tab?: AlertTab | undefined
  state?: Alert['state'][] | undefined
  workflow?: string | undefined
  /** The alert that is shown. */
  alert?: number | undefined
  sent?: AlertDelivery['state'][] | undefined
  channel?: string | undefined
  /** The definition whose form is open; `new`: of another. */
  open?: string | undefined
  /** The run that is explained. */
  run?: number | undefined
}

interface Props {
  project: string | undefined
  search: AlertSearch
  /** Changes the view; with `project`: to that one. `isReplaced`: the way back does not lead to this one. */
  onSearch: (to: AlertSearch & { project?: string }, isReplaced: boolean) => void
}

export function AlertsPage({ project, search, onSearch }: Props) {
  const t = useT()
  const { data, error, refetch } = useQuery(projectsOf)
  const names = data?.items.map((one) => one.name) ?? []
  const chosen = project ?? (names.length === 1 ? names[0] : undefined) // nothing to choose from
  if (chosen) return <OfProject key={chosen} project={chosen} search={search} onSearch={onSearch} />
  return (
    <div className="page-fill">
      <PageHead title={t('nav.alerts')} />
      {error ? <Trouble error={error} retry={() => void refetch()} /> : null}
      {!data && !error ? <Loading rows={6} /> : null}
      {data ? (
        <Empty
          title={t(names.length ? 'alerts.choose' : 'projects.empty')}
          action={names.length ? <Select className="alerts-project" showSearch placeholder={t('common.project')} aria-label={t('common.project')} value={null} onChange={(name: string | null) => name && onSearch({ project: name, tab: search.tab }, true)} options={names.map((value) => ({ value, label: value }))} /> : null}
        >
          {names.length ? t('alerts.choose.text') : null}
        </Empty>
      ) : null}
    </div>
  )
}

function OfProject({ project, search, onSearch }: Props & { project: string }) {
  const t = useT()
  const [silenced, setSilenced] = useState<Covered | null>(null)
  const tab = search.tab ?? 'history'
  // What opens over the page is closed by going back.
  const change = (to: AlertSearch): void => onSearch({ ...search, ...to }, !to.alert && !to.open)
  const go = (to: AlertTab, open?: string): void => onSearch({ tab: to, open }, !open)
  const definitions = { project, open: search.open, onOpen: (name: string | undefined) => change({ open: name }), onGo: go }
  const state = useMemo(() => search.state ?? [], [search.state])
  const sent = useMemo(() => search.sent ?? [], [search.sent])
  return (
    <div className="page-fill">
      <PageHead crumbs={project} title={t('nav.alerts')} />
      <Tabs
        className="fill-tabs"
        activeKey={tab}
        onChange={(key) => go(key as AlertTab)}
        destroyOnHidden
        items={[
          { key: 'history', label: t('alerts.history'), children: <History project={project} state={state} workflow={search.workflow} onFilter={change} onOpen={(id) => change({ alert: id })} onGo={go} /> },
          { key: 'messages', label: t('alerts.messages'), children: <Messages project={project} state={sent} channel={search.channel} onAlert={(id) => change({ alert: id })} onFilter={change} /> },
          { key: 'rules', label: t('alerts.rules'), children: <Rules {...definitions} /> },
          { key: 'receivers', label: t('alerts.receivers'), children: <Receivers {...definitions} /> },
          { key: 'channels', label: t('alerts.channels'), children: <Channels {...definitions} /> },
          { key: 'silences', label: t('alerts.silences'), children: <Silences project={project} onMake={() => setSilenced({})} /> },
          { key: 'why', label: t('alerts.why'), children: <Why project={project} run={search.run} onRun={(run) => change({ run })} onOpen={(id) => change({ alert: id })} /> },
        ]}
      />
      {search.alert ? <AlertDrawer key={search.alert} project={project} id={search.alert} onSilence={setSilenced} onClose={() => change({ alert: undefined })} /> : null}
      {silenced ? <SilenceForm project={project} covered={silenced} onClose={() => setSilenced(null)} /> : null}
    </div>
  )
}
