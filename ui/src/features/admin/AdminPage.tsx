/** What belongs to no project: users, groups, environments, the audit. */
import { Tabs } from 'antd'
import { AuditList, type AuditSearch } from '@/entities/AuditList'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/admin'
import { PageHead } from '@/shared/ui/parts'
import { Chain } from './Chain'
import { Environments } from './Environments'
import { Groups } from './Groups'
import { Users } from './Users'

export type AdminTab = 'users' | 'groups' | 'environments' | 'audit'

interface Props {
  tab: AdminTab | undefined
  onTab: (tab: AdminTab) => void
  audit: AuditSearch
  onAudit: (to: AuditSearch) => void
}

export function AdminPage({ tab, onTab, audit, onAudit }: Props) {
  const t = useT()
  return (
    <div className="page-fill">
      <PageHead title={t('admin.title')} />
      <Tabs
        className="fill-tabs"
        activeKey={tab ?? 'users'}
        onChange={(key) => onTab(key as AdminTab)}
        destroyOnHidden
        items={[
          { key: 'users', label: t('admin.users'), children: <Users /> },
          { key: 'groups', label: t('admin.groups'), children: <Groups /> },
          { key: 'environments', label: t('admin.environments'), children: <Environments /> },
          { key: 'audit', label: t('admin.audit'), children: <div className="stack"><p className="lead">{t('audit.text')}</p><Chain /><AuditList search={audit} onSearch={onAudit} /></div> },
        ]}
      />
    </div>
  )
}
