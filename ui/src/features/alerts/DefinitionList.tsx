/** The definitions of one sort: what they are for, a row each, the form of the one that is open. */
import { Button } from 'antd'
import type { ReactNode } from 'react'
import { ListTable, useRows } from '@/entities/lists'
import { Act, useRefusal, type Needed } from '@/entities/marks'
import { useAsk, useDo } from '@/entities/saving'
import { useT, type TextKey } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { keyOf, type Definitions } from './queries'
import { Setup, type Step } from './Setup'

/** Which definition is open; `new`: another one. */
export interface Opening {
  project: string
  open: string | undefined
  onOpen: (name: string | undefined) => void
  onGo: (step: Step, open: string) => void
}

interface Props<Row, Body> extends Opening {
  step: Step
  needed: Needed
  definitions: Definitions<Row, Body>
  columns: readonly Column<Row>[]
  /** What else can be done with one, beside its other buttons. */
  extra?: (row: Row, refusal: string | null) => ReactNode
  form: (name: string | null, refusal: string | null, close: () => void) => ReactNode
}

export function DefinitionList<Row extends { name: string; updated_at: string }, Body>({ project, open, onOpen, onGo, step, needed, definitions, columns, extra, form }: Props<Row, Body>) {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal(needed, project)
  const list = useRows<Row>(definitions.list(project))
  const of = (what: 'title' | 'text' | 'add' | 'delete') => t(({ title: `alerts.${step}`, text: `alerts.${step}.text`, add: `alerts.${step}.add`, delete: `alerts.${step}.delete` } as const)[what] satisfies TextKey)
  const remove = (name: string): void =>
    ask({ title: `${t('common.delete')}: ${name}`, text: of('delete'), ok: t('common.delete'), act: () => act(() => definitions.remove(project, name), t('common.deleted', { name }), [keyOf(project)]) })
  const rest: Column<Row>[] = [
    { key: 'at', title: t('common.changed'), width: 'minmax(190px, 210px)', hide: 'medium', render: (row) => <Time at={row.updated_at} /> },
    {
      key: 'ways',
      title: <span className="hidden">{t('common.edit')}</span>,
      width: extra ? '200px' : '128px',
      render: (row) => (
        <span className="row ways">
          {extra?.(row, refusal)}
          <Button size="small" type="text" onClick={() => onOpen(row.name)}>{t('common.edit')}<span className="hidden"> {row.name}</span></Button>
          <Act size="small" type="text" danger refusal={refusal} onClick={() => remove(row.name)}>{t('common.delete')}<span className="hidden"> {row.name}</span></Act>
        </span>
      ),
    },
  ]
  return (
    <div className="stack">
      <div className="section-head">
        <p className="lead">{of('text')}</p>
        {list.rows.length ? <Act refusal={refusal} type="primary" onClick={() => onOpen('new')}>{of('add')}</Act> : null}
      </div>
      <ListTable list={list} label={of('title')} columns={[...columns, ...rest]} rowKey={(row) => row.name} onOpen={(row) => onOpen(row.name)} empty={<Setup project={project} onGo={onGo} />} />
      {open ? form(open === 'new' ? null : open, refusal, () => onOpen(undefined)) : null}
    </div>
  )
}
