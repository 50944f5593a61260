/** One kind of setting: what it is for, its rows, how one is added. */
import { Button } from 'antd'
import { useState, type ReactNode } from 'react'
import { ListTable, type Rows } from '@/entities/lists'
import { Act, useRefusal, type Needed } from '@/entities/marks'
import { useAsk, useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'

interface Props<T> {
  project: string
  needed: Needed
  list: Rows<T>
  label: string
  text: string
  none: string
  add: string
  columns: readonly Column<T>[]
  nameOf: (row: T) => string
  /** Returns the form of a row; of a new one without. */
  form?: (row: T | null, close: () => void, refusal: string | null) => ReactNode
  edit?: string
  remove?: { text: string; ok?: string; act: (row: T) => Promise<unknown>; done?: string; may?: (row: T) => boolean }
  renew: readonly (readonly unknown[])[]
  extra?: (row: T) => ReactNode
}

export function Section<T>({ project, needed, list, label, text, none, add, columns, nameOf, form, edit, remove, renew, extra }: Props<T>) {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal(needed, project)
  const [open, setOpen] = useState<T | 'new' | null>(null)
  const canEdit = form !== undefined && edit !== undefined
  const ways: Column<T> = {
    key: 'ways',
    title: <span className="hidden">{t('common.edit')}</span>,
    width: canEdit && remove ? '168px' : '96px',
    render: (row) => (
      <span className="row ways">
        {extra?.(row)}
        {canEdit ? <Button size="small" type="text" onClick={() => setOpen(row)}>{edit}<span className="hidden"> {nameOf(row)}</span></Button> : null}
        {remove && (remove.may?.(row) ?? true) ? (
          <Act
            size="small"
            type="text"
            danger
            refusal={refusal}
            onClick={() => ask({ title: `${remove.ok ?? t('common.delete')}: ${nameOf(row)}`, text: remove.text, ok: remove.ok ?? t('common.delete'), act: () => act(() => remove.act(row), remove.done ?? t('common.deleted', { name: nameOf(row) }), renew) })}
          >
            {remove.ok ?? t('common.delete')}<span className="hidden"> {nameOf(row)}</span>
          </Act>
        ) : null}
      </span>
    ),
  }
  const adding = form ? <Act refusal={refusal} type="primary" onClick={() => setOpen('new')}>{add}</Act> : null
  return (
    <div className="stack">
      <div className="section-head">
        <p className="lead">{text}</p>
        {list.rows.length ? adding : null}
      </div>
      <ListTable list={list} label={label} columns={[...columns, ...(canEdit || remove || extra ? [ways] : [])]} rowKey={nameOf} empty={<Empty title={none} action={adding} />} {...(canEdit ? { onOpen: (row: T) => setOpen(row) } : {})} />
      {open !== null && form ? form(open === 'new' ? null : open, () => setOpen(null), refusal) : null}
    </div>
  )
}
