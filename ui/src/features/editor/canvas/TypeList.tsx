/** The palette: every installed task type, to be dragged, or added by click and Enter. */
import { Input, Tooltip, type InputRef } from 'antd'
import { useEffect, useRef, useState } from 'react'
import type { TaskType } from '@/api/types'
import { useT } from '@/shared/i18n'
import { grouped } from '../types'
import { DRAGGED } from './Canvas'

interface Props {
  types: readonly TaskType[]
  refusal: string | null
  onAdd: (type: string) => void
  onDone: () => void
  /** A new object puts the cursor into the search. */
  focus: object | null
}

export function TypeList({ types, refusal, onAdd, onDone, focus }: Props) {
  const t = useT()
  const [text, setText] = useState('')
  const input = useRef<InputRef>(null)
  useEffect(() => {
    if (focus) input.current?.focus({ cursor: 'all' })
  }, [focus])
  const wanted = text.toLowerCase()
  const groups = grouped(types).map((group) => ({ ...group, types: group.types.filter((name) => name.toLowerCase().includes(wanted)) })).filter((group) => group.types.length)
  const first = groups[0]?.types[0]
  const about = (name: string): string => types.find((one) => one.name === name)?.params_schema.description as string | undefined ?? ''
  return (
    <aside className="type-list" aria-label={t('palette.types')}>
      <Input
        ref={input}
        size="small"
        allowClear
        placeholder={t('palette.find')}
        aria-label={t('palette.find')}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && first && refusal === null) {
            onAdd(first)
            setText('')
          }
          if (event.key === 'Escape') onDone()
        }}
      />
      {groups.map((group) => (
        <div key={group.title} className="type-group">
          <h3>{t(group.title)}</h3>
          {group.types.map((name) => (
            <Tooltip key={name} title={refusal ?? about(name).split('\n\n')[0]} placement="right" mouseEnterDelay={0.5}>
              <button
                type="button"
                className="type-item"
                draggable={refusal === null}
                aria-disabled={refusal !== null}
                data-type={name}
                onDragStart={(event) => {
                  event.dataTransfer.setData(DRAGGED, name)
                  event.dataTransfer.effectAllowed = 'copy'
                }}
                onClick={() => refusal === null && onAdd(name)}
              >
                {name}
              </button>
            </Tooltip>
          ))}
        </div>
      ))}
      {groups.length ? null : <p className="dim small">{t('palette.none')}</p>}
    </aside>
  )
}
