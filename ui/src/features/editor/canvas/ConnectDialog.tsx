/** Connects tasks by name, for those who work without a mouse, and where tasks are far apart. */
import { Modal, Segmented, Select } from 'antd'
import { useState } from 'react'
import type { TaskModel } from '@/definition/parse'
import { closesCircle } from '@/definition/tasks'
import { useT } from '@/shared/i18n'

interface Props {
  tasks: readonly TaskModel[]
  from: readonly string[]
  onClose: () => void
  onConnect: (edges: readonly [source: string, target: string][]) => void
}

export function ConnectDialog({ tasks, from, onClose, onConnect }: Props) {
  const t = useT()
  const [side, setSide] = useState<'after' | 'before'>('before')
  const [chosen, setChosen] = useState<string[]>([])
  const edgesTo = (name: string): [string, string][] => from.map((own) => (side === 'before' ? [own, name] : [name, own]))
  const options = tasks.filter((task) => !from.includes(task.name) && edgesTo(task.name).every(([source, target]) => !closesCircle(tasks, source, target)))
  const done = (): void => {
    onConnect(chosen.flatMap(edgesTo))
    onClose()
  }
  return (
    <Modal open title={t('connect.title', { name: from.join(', ') })} onCancel={onClose} onOk={done} okText={t('connect.ok')} cancelText={t('common.cancel')} okButtonProps={{ disabled: !chosen.length }} destroyOnHidden width={440}>
      <div className="stack">
        <Segmented<'after' | 'before'> value={side} onChange={(value) => (setSide(value), setChosen([]))} options={[{ value: 'before', label: t('connect.before') }, { value: 'after', label: t('connect.after') }]} />
        <Select autoFocus defaultOpen mode="multiple" className="full" value={chosen} onChange={setChosen} placeholder={t('connect.hint')} aria-label={t('connect.hint')} options={options.map((task) => ({ value: task.name, label: <>{task.name} <span className="dim small">{task.type}</span></> }))} optionFilterProp="value" onInputKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && chosen.length) done()
        }} />
      </div>
    </Modal>
  )
}
