/** Chooses what a rule is about: triggers in plain words, by what they are of. */
import { Checkbox } from 'antd'
import { useRefusal } from '@/entities/marks'
import { useNamed, useT } from '@/shared/i18n'
import { useTrigger } from '../looks'
import { triggerGroups, type Trigger } from './rule'

export function Triggers({ value = [], onChange }: { value?: Trigger[]; onChange?: (value: Trigger[]) => void }) {
  const t = useT()
  const named = useNamed()
  const refusal = useRefusal('cluster.read') // what is about the cluster is for its administrators
  const wordsOf = useTrigger()
  const toggle = (trigger: Trigger): void => onChange?.(value.includes(trigger) ? value.filter((one) => one !== trigger) : [...value, trigger])
  return (
    <div className="triggers">
      {triggerGroups().map((group) => {
        const isRefused = group.name === 'cluster' && refusal !== null
        return (
        <fieldset key={group.name} className="trigger-group">
          <legend>{named('alerts.triggers', group.name)}</legend>
          {group.triggers.map((trigger) => (
            <Checkbox key={trigger} disabled={isRefused && !value.includes(trigger)} checked={value.includes(trigger)} onChange={() => toggle(trigger)} data-trigger={trigger}>{wordsOf(trigger)}</Checkbox>
          ))}
          {group.name === 'cluster' ? <p className="dim small">{isRefused ? refusal : t('alerts.triggers.cluster.hint')}</p> : null}
        </fieldset>
        )
      })}
    </div>
  )
}
