/** Groups of tasks in the editor: made, named, folded and dissolved by menu and by key. */
import { Form, Input, Modal, type MenuProps } from 'antd'
import { useMemo, useState, type ReactNode } from 'react'
import { NAME } from '@/definition/tasks'
import { folded, freeGroupName, grouped, groupsWith, renamedGroup, ungrouped, type Groups } from '@/graph/groups'
import type { Fold } from '@/graph/GroupBoxes'
import { useT } from '@/shared/i18n'
import type { Session, SessionState } from '../session'

export interface Grouping {
  /** As they are shown: those who may only read fold for themselves alone. */
  groups: Groups
  /** Of tasks that there are. */
  names: readonly string[]
  fold: Fold
  /** Of the chosen tasks; false: there is nothing of the kind to do. */
  group: () => boolean
  ungroup: () => boolean
  foldChosen: (isFolded: boolean) => boolean
  menu: NonNullable<MenuProps['items']>
  dialog: ReactNode
}

/** Returns the groups, and what can be done to them with the chosen tasks. */
export function useGrouping(session: Session, state: SessionState, selected: readonly string[]): Grouping {
  const t = useT()
  const [own, setOwn] = useState<Groups | null>(null)
  const [naming, setNaming] = useState<{ name: string | null; tasks: readonly string[] } | null>(null)
  const mayEdit = state.refusal === null
  const groups = mayEdit ? state.groups : (own ?? state.groups)
  const { tasks } = state.good
  const names = useMemo(() => groupsWith(groups, tasks.map((task) => task.name)), [groups, tasks])
  const chosen = useMemo(() => (selected.length ? groupsWith(groups, selected) : []), [groups, selected])
  const fold: Fold = (which, isFolded) => {
    const changed = which.filter((name) => groups[name]?.isFolded !== isFolded)
    if (!changed.length) return
    if (mayEdit) session.group(isFolded ? 'edit.fold' : 'edit.unfold', (now) => folded(now, changed, isFolded))
    else setOwn(folded(groups, changed, isFolded))
  }
  const group = (): boolean => {
    if (!mayEdit || !selected.length) return false
    setNaming({ name: null, tasks: selected })
    return true
  }
  const ungroup = (): boolean => {
    if (!mayEdit || !chosen.length) return false
    session.group('edit.ungroup', (now) => ungrouped(now, chosen))
    return true
  }
  const foldChosen = (isFolded: boolean): boolean => {
    fold(chosen, isFolded)
    return chosen.length > 0
  }
  const one = chosen.length === 1 ? (chosen[0] ?? null) : null
  const menu: NonNullable<MenuProps['items']> = [
    { key: 'new', label: t('group.new'), extra: 'Ctrl G', disabled: !mayEdit || !selected.length, onClick: () => void group() },
    { key: 'name', label: t('group.rename'), disabled: !mayEdit || one === null, onClick: () => one !== null && setNaming({ name: one, tasks: [] }) },
    { key: 'ungroup', label: t('group.ungroup'), extra: 'Ctrl Shift G', disabled: !mayEdit || !chosen.length, onClick: () => void ungroup() },
  ]
  const done = (name: string): void => {
    if (naming?.name) {
      const before = naming.name
      session.group('edit.nameGroup', (now) => renamedGroup(now, before, name))
    } else if (naming) {
      session.group('edit.group', (now) => grouped(now, name, naming.tasks))
    }
    setNaming(null)
  }
  const dialog = naming ? <NameDialog isNew={naming.name === null} count={naming.tasks.length} name={naming.name ?? freeGroupName(groups)} taken={groups} onClose={() => setNaming(null)} onDone={done} /> : null
  return { groups, names, fold, group, ungroup, foldChosen, menu, dialog }
}

function NameDialog({ isNew, count, name, taken, onClose, onDone }: { isNew: boolean; count: number; name: string; taken: Groups; onClose: () => void; onDone: (name: string) => void }) {
  const t = useT()
  const [text, setText] = useState(name)
  const mistake = !NAME.test(text) ? t('task.badName') : (isNew || text !== name) && Object.hasOwn(taken, text) ? t('group.taken') : null
  const done = (): void => {
    if (mistake === null) onDone(text)
  }
  return (
    <Modal open title={isNew ? t('group.newTitle', { count }) : t('group.rename')} onCancel={onClose} onOk={done} okText={t('common.save')} cancelText={t('common.cancel')} okButtonProps={{ disabled: mistake !== null }} width={380}>
      <Form.Item label={t('common.name')} layout="vertical" {...(mistake ? { validateStatus: 'error' as const, help: mistake } : {})}>
        <Input autoFocus value={text} aria-label={t('common.name')} onFocus={(event) => event.target.select()} onChange={(event) => setText(event.target.value)} onPressEnter={done} />
      </Form.Item>
    </Modal>
  )
}
