/** What belongs to a project: values, limits, who may do what. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Form, Input, Tabs } from 'antd'
import { useState } from 'react'
import { api, onlyIf, take } from '@/api/client'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { AuditList, type AuditSearch } from '@/entities/AuditList'
import { ProjectTabs } from '@/entities/ProjectTabs'
import { projects as projectsOf } from '@/entities/queries'
import { FormDrawer } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { Facts, Loading, PageHead, Panel } from '@/shared/ui/parts'
import { Grants, Members, ServiceAccounts } from './Access'
import { Calendars, ConcurrencyGroups } from './Limits'
import { projectNow } from './queries'
import { Parameters, Secrets } from './Values'

export const SETTINGS_TABS = ['parameters', 'secrets', 'calendars', 'groups', 'members', 'grants', 'accounts', 'audit'] as const
export type SettingsTab = (typeof SETTINGS_TABS)[number]

interface Props {
  project: string
  tab: SettingsTab | undefined
  onTab: (tab: SettingsTab) => void
  audit: AuditSearch
  onAudit: (to: AuditSearch) => void
}

export function SettingsPage({ project, tab, onTab, audit, onAudit }: Props) {
  const t = useT()
  const { data, error, refetch } = useQuery(projectNow(project))
  const all = useQuery(projectsOf)
  const [isEditing, setEditing] = useState(false)
  const refusal = useRefusal('project.manage', project)
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={10} />
  const names = all.data?.items.map((one) => one.name) ?? []
  return (
    <div className="page-fill">
      <PageHead crumbs={<Link to="/projects">{t('nav.projects')}</Link>} title={project}>
        <Act refusal={refusal} onClick={() => setEditing(true)}>{t('common.edit')}…</Act>
      </PageHead>
      {data.value.description ? <p className="lead">{data.value.description}</p> : null}
      <ProjectTabs project={project} here="settings" />
      <Tabs
        className="fill-tabs"
        activeKey={tab ?? 'parameters'}
        onChange={(key) => onTab(key as SettingsTab)}
        destroyOnHidden
        items={[
          { key: 'parameters', label: t('settings.parameters'), children: <Parameters project={project} /> },
          { key: 'secrets', label: t('settings.secrets'), children: <Secrets project={project} /> },
          { key: 'calendars', label: t('settings.calendars'), children: <Calendars project={project} /> },
          { key: 'groups', label: t('settings.groups'), children: <ConcurrencyGroups project={project} /> },
          { key: 'members', label: t('settings.members'), children: <Members project={project} /> },
          { key: 'grants', label: t('settings.grants'), children: <Grants project={project} projects={names} /> },
          { key: 'accounts', label: t('settings.accounts'), children: <ServiceAccounts project={project} /> },
          { key: 'audit', label: t('settings.audit'), children: <AuditList project={project} search={audit} onSearch={onAudit} /> },
        ]}
      />
      {isEditing ? <EditProject project={project} description={data.value.description} etag={data.etag} created={data.value.created_at} refusal={refusal} onClose={() => setEditing(false)} /> : null}
    </div>
  )
}

function EditProject({ project, description, etag, created, refusal, onClose }: { project: string; description: string; etag: string; created: string; refusal: string | null; onClose: () => void }) {
  const t = useT()
  const queries = useQueryClient()
  const save = async (values: { description: string }): Promise<void> => {
    await take(api.PUT('/api/v1/projects/{project}', { params: { path: { project }, header: onlyIf(etag) }, body: { description: values.description ?? '' } }))
    await queries.invalidateQueries({ queryKey: ['projects'] })
  }
  return (
    <FormDrawer<{ description: string }> title={project} initial={{ description }} submit={t('common.save')} refusal={refusal} onClose={onClose} onSave={save}>
      <Form.Item name="description" label={t('common.description')}><Input.TextArea autoSize={{ minRows: 2, maxRows: 8 }} autoFocus /></Form.Item>
      <Panel><Facts items={[[t('common.created'), <Time key="c" at={created} />]]} /></Panel>
    </FormDrawer>
  )
}
