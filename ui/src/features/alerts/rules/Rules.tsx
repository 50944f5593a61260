/** Rules of a project: what is an alert, and who is told of it. */
import { Tag } from 'antd'
import type { AlertRule } from '@/api/types'
import { useT } from '@/shared/i18n'
import type { Column } from '@/shared/ui/DataTable'
import { DefinitionList, type Opening } from '../DefinitionList'
import { SeverityMark, useTrigger } from '../looks'
import { rules } from '../queries'
import { specOf } from './rule'
import { RuleForm } from './RuleForm'

export function Rules(props: Opening) {
  const t = useT()
  const wordsOf = useTrigger()
  const columns: Column<AlertRule>[] = [
    { key: 'name', title: t('common.name'), width: 'minmax(110px, 1fr)', render: (row) => <span className="row"><code className="cut">{row.name}</code>{specOf(row).enabled ? null : <Tag>{t('alerts.disabled')}</Tag>}</span> },
    { key: 'when', title: t('alerts.rule.about'), width: 'minmax(120px, 2fr)', hide: 'narrow', render: (row) => <Joined texts={specOf(row).triggers.map(wordsOf)} /> },
    { key: 'of', title: t('alerts.workflows'), width: 'minmax(90px, 1fr)', hide: 'medium', render: (row) => (specOf(row).workflows.length ? <Joined texts={specOf(row).workflows} isCode /> : <span className="dim">{t('alerts.workflows.all')}</span>) },
    { key: 'who', title: t('alerts.rule.who'), width: 'minmax(90px, 1fr)', hide: 'medium', render: (row) => specOf(row).receivers.map((one) => <Tag key={one}>{one}</Tag>) },
    { key: 'severity', title: t('alerts.severity'), width: '108px', hide: 'narrow', render: (row) => <SeverityMark severity={specOf(row).severity} /> },
  ]
  return (
    <DefinitionList
      {...props}
      step="rules"
      needed="project.edit"
      definitions={rules}
      columns={columns}
      form={(name, refusal, close) => <RuleForm key={name} project={props.project} name={name} refusal={refusal} onClose={close} />}
    />
  )
}

function Joined({ texts, isCode = false }: { texts: readonly string[]; isCode?: boolean }) {
  const text = texts.join(isCode ? ', ' : ' · ')
  return <span className={isCode ? 'cut mono' : 'cut'} title={text}>{text}</span>
}
