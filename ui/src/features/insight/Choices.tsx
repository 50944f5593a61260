/** Which days and which workflow are looked at. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { Button, Popover, Segmented, Select } from 'antd'
import { useDeferredValue, useState } from 'react'
import { workflows as workflowsOf } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import { PRESETS, type Preset } from './days'
import type { InsightSearch, View } from './view'

interface Props {
  project: string | undefined
  view: View
  onSearch: (to: InsightSearch) => void
}

export function Choices({ project, view, onSearch }: Props) {
  const t = useT()
  const { window } = view
  return (
    <>
      <WorkflowChoice project={project} view={view} onSearch={onSearch} />
      <Segmented<Preset | 'other'>
        value={window.preset ?? 'other'}
        onChange={(days) => days !== 'other' && onSearch({ days, from: undefined, to: undefined })}
        options={[...PRESETS.map((value) => ({ value, label: t('insight.days', { count: value }) })), ...(window.preset ? [] : [{ value: 'other' as const, label: t('insight.days.chosen') }])]}
        aria-label={t('insight.days.label')}
      />
      <OtherDays view={view} onSearch={onSearch} />
    </>
  )
}

function OtherDays({ view, onSearch }: Omit<Props, 'project'>) {
  const t = useT()
  const [isOpen, setOpen] = useState(false)
  return (
    <Popover
      trigger="click"
      open={isOpen}
      onOpenChange={setOpen}
      destroyOnHidden
      content={<DaysForm from={view.window.from} to={view.window.to} onDays={(from, to) => { onSearch({ days: undefined, from, to }); setOpen(false) }} />}
    >
      <Button>{t('insight.days.other')}</Button>
    </Popover>
  )
}

function DaysForm({ from, to, onDays }: { from: string; to: string; onDays: (from: string, to: string) => void }) {
  const t = useT()
  const [first, setFirst] = useState(from)
  const [last, setLast] = useState(to)
  const field = (id: string, label: string, value: string, set: (value: string) => void) => (
    <label className="insight-day" htmlFor={id}>{label}<input id={id} className="ant-input" type="date" required value={value} onChange={(event) => set(event.target.value)} /></label>
  )
  return (
    <form className="stack" onSubmit={(event) => { event.preventDefault(); onDays(first, last) }}>
      <div className="row">{field('i-from', t('insight.from'), first, setFirst)}{field('i-to', t('insight.to'), last, setLast)}</div>
      <p className="dim small">{t('insight.days.hint')}</p>
      <Button htmlType="submit" type="primary" disabled={!first || !last}>{t('insight.days.show')}</Button>
    </form>
  )
}

const MOST = 20 // of the list below the field

function WorkflowChoice({ project, view: { one }, onSearch }: Props) {
  const t = useT()
  const [text, setText] = useState('')
  const wanted = useDeferredValue(text.trim())
  const { data } = useInfiniteQuery(workflowsOf(one ? undefined : project, wanted || undefined, 'name', 0))
  const names = (data?.pages[0]?.items ?? []).slice(0, MOST).map((found) => `${found.project}/${found.name}`)
  const value = one ? `${one.project}/${one.name}` : null
  return (
    <Select
      className="insight-workflow"
      showSearch={{ filterOption: false, onSearch: setText }}
      allowClear
      aria-label={t('common.workflow')}
      placeholder={t('insight.allWorkflows')}
      value={value}
      onChange={(workflow: string | null | undefined) => onSearch({ workflow: workflow ?? undefined })}
      options={[...new Set([...(value ? [value] : []), ...names])].map((name) => ({ value: name, label: name }))}
      popupMatchSelectWidth={300}
    />
  )
}
