/** How does it behave? What the version says of the workflow as a whole, and what holds where it says nothing. */
import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { stringify } from 'yaml'
import { WORKFLOW_FIELDS } from '@/definition/fields'
import { Act, useRefusal } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useTranslated } from '@/shared/i18n/useFieldTexts'
import '@/shared/i18n/editor'
import { Panel } from '@/shared/ui/parts'

interface Props {
  project: string
  name: string
  definition: Record<string, unknown>
  onEdit: () => void
}

export function Settings({ project, name, definition, onEdit }: Props) {
  const t = useT()
  const fields = useTranslated(WORKFLOW_FIELDS)
  const refusal = useRefusal('project.edit', project)
  return (
    <div className="stack">
      <div className="row">
        <Act refusal={refusal} onClick={onEdit}>{t('settings.change')}</Act>
        <Link className="over small" to="/projects/$project/workflows/$name" params={{ project, name }} search={{ tab: 'schedules' as const }}>{t('workflow.schedules')}</Link>
      </div>
      <Panel>
        <dl className="settings-list">
          {fields.map(({ name: field, standard, description }) => (
            <Fragment key={field}>
              <dt><code>{field}</code></dt>
              <dd>
                <Value value={definition[field]} standard={standard} />
                <span className="dim small">{description}</span>
              </dd>
            </Fragment>
          ))}
        </dl>
      </Panel>
    </div>
  )
}

function Value({ value, standard }: { value: unknown; standard: unknown }) {
  const t = useT()
  const isEmpty = value === undefined || value === null || value === '' || (typeof value === 'object' && !Object.keys(value).length)
  if (isEmpty) return <span className="dim">{standard === undefined ? t('settings.none') : t('settings.standard', { value: plain(standard) })}</span>
  return typeof value === 'object' ? <pre className="settings-value">{plain(value)}</pre> : <strong>{plain(value)}</strong>
}

const plain = (value: unknown): string => stringify(value, { lineWidth: 80 }).trimEnd()
