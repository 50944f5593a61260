/** The head of the audit's chain, and whether all before it fits. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Button, Progress } from 'antd'
import { useState } from 'react'
import { api, ApiProblem, take } from '@/api/client'
import type { Problem } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { Panel } from '@/shared/ui/parts'
import { verifyChain, type Verdict } from './verify'

export function Chain() {
  const t = useT()
  const { data: head } = useQuery({ queryKey: ['audit', 'head'], queryFn: () => take(api.GET('/api/v1/audit-head')) })
  const [count, setCount] = useState<number | null>(null)
  const [verdict, setVerdict] = useState<Verdict | null>(null)
  const [error, setError] = useState<Error | null>(null)
  const verify = async (): Promise<void> => {
    setVerdict(null)
    setError(null)
    setCount(0)
    try {
      setVerdict(await verifyChain(readLinks, setCount))
    } catch (thrown) {
      setError(thrown as Error)
    } finally {
      setCount(null)
    }
  }
  if (!head) return null
  return (
    <Panel>
      <div className="row chain">
        <span>{t('audit.head', { position: head.position })}</span>
        <code className="cut" title={t('audit.head.hint')}>{head.position}:{head.hash}</code>
        {head.pruned ? <span className="dim">{t('audit.pruned', { count: head.pruned })}</span> : null}
        {head.unlinked ? <span className="dim">{t('audit.unlinked', { count: head.unlinked })}</span> : null}
        <span className="grow" />
        <Button size="small" loading={count !== null} onClick={() => void verify()}>{t('audit.verify')}</Button>
      </div>
      {count === null ? null : <><Progress size="small" showInfo={false} percent={(100 * count) / Math.max(1, head.position)} aria-label={t('audit.verify')} /><p className="dim">{t('audit.verifying', { count, total: head.position })}</p></>}
      {error ? <Trouble error={error} /> : null}
      {verdict ? <div role="status" data-verdict={verdict.broken === null ? 'whole' : 'broken'}><Alert type={verdict.broken === null ? 'success' : 'error'} showIcon title={verdict.broken === null ? t('audit.verified', { count: verdict.count }) : t('audit.broken', { position: verdict.broken })} /></div> : null}
    </Panel>
  )
}

async function readLinks(after: number, limit: number): Promise<string> {
  const response = await fetch(`/api/v1/audit-chain?after=${after}&limit=${limit}`)
  const text = await response.text()
  if (response.ok) return text
  throw new ApiProblem(response.status, JSON.parse(text) as Partial<Problem>)
}
