/** Whether what is typed is safe, and where. */
import { Button, Tag } from 'antd'
import { useEffect, useState } from 'react'
import { useT } from '@/shared/i18n'
import type { SavingInfo } from './saving'

const TICK_MS = 5000

export function DraftState({ info, refusal, newest, onDecide }: { info: SavingInfo; refusal: string | null; newest: number; onDecide: () => void }) {
  const t = useT()
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [info.at])
  if (refusal !== null) return <Tag className="num">v{newest}</Tag>
  const seconds = Math.max(0, Math.round((now - info.at) / 1000))
  const ago = seconds < 60 ? t('draft.secondsAgo', { count: seconds }) : t('draft.minutesAgo', { count: Math.floor(seconds / 60) })
  const text = {
    published: newest ? t('draft.published', { version: newest }) : t('draft.new'),
    waiting: t('draft.waiting'),
    saving: t('draft.saving'),
    saved: t('draft.saved', { ago }),
    offline: t('draft.offline'),
    refused: t('draft.refused', { reason: info.problem }),
    conflict: t('draft.conflict'),
  }[info.state]
  return (
    <span className={`draft-state ${info.state}`} role="status" data-draft={info.state}>
      <span className="draft-dot" aria-hidden />
      {text}
      {info.state === 'conflict' ? <Button size="small" onClick={onDecide}>{t('draft.decide')}</Button> : null}
    </span>
  )
}
