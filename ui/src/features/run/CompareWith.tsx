/** Leads to the comparison of this run with another one; the one before it is a click away. */
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Button, InputNumber, Popover } from 'antd'
import { useState } from 'react'
import type { InstanceDetail } from '@/api/types'
import { recentRuns } from '@/entities/queries'
import { useT } from '@/shared/i18n'

export function CompareWith({ run }: { run: InstanceDetail }) {
  const t = useT()
  const [isOpen, setOpen] = useState(false)
  return (
    <Popover trigger="click" open={isOpen} onOpenChange={setOpen} destroyOnHidden content={<Choose run={run} />}>
      <Button className="wide-only">{t('compare.open')}</Button>
    </Popover>
  )
}

function Choose({ run }: { run: InstanceDetail }) {
  const t = useT()
  const navigate = useNavigate()
  const [other, setOther] = useState<number | null>(null)
  const { data } = useQuery(recentRuns({ project: run.project, workflow: run.workflow, until: run.created_at, limit: 5 }))
  const before = data?.items.find((one) => one.id < run.id)
  const go = (): void => {
    if (other) void navigate({ to: '/compare', search: { a: other, b: run.id } })
  }
  return (
    <div className="stack">
      {before ? <Link to="/compare" search={{ a: before.id, b: run.id }}>{t('compare.previous', { id: before.id })}</Link> : null}
      <form className="row" onSubmit={(event) => { event.preventDefault(); go() }}>
        <InputNumber autoFocus min={1} precision={0} aria-label={t('compare.with')} placeholder={t('compare.hint')} value={other} onChange={setOther} />
        <Button htmlType="submit" type="primary" disabled={!other}>{t('compare.title')}</Button>
      </form>
    </div>
  )
}
