/** Two have changed the same: each place with both sides, and the person decides. */
import { Alert, Button, Modal, Radio } from 'antd'
import { useState } from 'react'
import { stringify } from 'yaml'
import type { Conflict } from '@/definition/merge'
import { takeTheirs } from '@/definition/merge'
import { useT } from '@/shared/i18n'
import { Code } from '@/shared/ui/parts'
import type { Clash } from '../saving'

type Side = 'mine' | 'theirs'

export function ConflictDialog({ clash, onDecide, onClose }: { clash: Clash; onDecide: (text: string) => void; onClose: () => void }) {
  const t = useT()
  const [sides, setSides] = useState<Readonly<Record<number, Side>>>({})
  const { conflicts } = clash
  const isWhole = conflicts.length === 0
  const decide = (): void => {
    if (isWhole) onDecide(sides[0] === 'theirs' ? clash.theirs : clash.mine)
    else onDecide(conflicts.reduce((text, one, at) => (sides[at] === 'theirs' ? takeTheirs(text, clash.theirs, one) : text), clash.merged))
  }
  const who = clash.with === 'version' ? t('conflict.version', { version: clash.version }) : t('conflict.window')
  return (
    <Modal
      open
      width={860}
      title={t('conflict.title')}
      onCancel={onClose}
      footer={[<Button key="later" onClick={onClose}>{t('conflict.later')}</Button>, <Button key="ok" type="primary" onClick={decide}>{t('conflict.ok')}</Button>]}
    >
      <div className="stack">
        <Alert type="warning" showIcon title={who} description={isWhole ? t('conflict.unreadable') : t('conflict.detail', { count: conflicts.length })} />
        {isWhole ? (
          <Choice label={t('conflict.whole')} mine={clash.mine} theirs={clash.theirs} side={sides[0] ?? 'mine'} onSide={(side) => setSides({ 0: side })} />
        ) : conflicts.map((one, at) => (
          <Choice key={at} label={labelOf(one, t('diff.workflow'))} mine={valueText(one.mine, t('conflict.removed'))} theirs={valueText(one.theirs, t('conflict.removed'))} side={sides[at] ?? 'mine'} onSide={(side) => setSides((old) => ({ ...old, [at]: side }))} />
        ))}
      </div>
    </Modal>
  )
}

function labelOf({ task, field }: Conflict, workflow: string): string {
  return [task ?? workflow, field].filter(Boolean).join(' · ')
}

function valueText(value: unknown, removed: string): string {
  return value === undefined ? removed : typeof value === 'string' ? value : stringify(value, { lineWidth: 80 }).trimEnd()
}

function Choice({ label, mine, theirs, side, onSide }: { label: string; mine: string; theirs: string; side: Side; onSide: (side: Side) => void }) {
  const t = useT()
  return (
    <fieldset className="conflict">
      <legend className="mono">{label}</legend>
      <Radio.Group value={side} onChange={(event) => onSide(event.target.value as Side)} className="columns">
        <div className={side === 'mine' ? 'side-choice chosen' : 'side-choice'}><Radio value="mine">{t('conflict.mine')}</Radio><Code text={mine} /></div>
        <div className={side === 'theirs' ? 'side-choice chosen' : 'side-choice'}><Radio value="theirs">{t('conflict.theirs')}</Radio><Code text={theirs} /></div>
      </Radio.Group>
    </fieldset>
  )
}
