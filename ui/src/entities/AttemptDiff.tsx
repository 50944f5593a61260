/** Two attempts beside each other: what was run, and what they wrote. */
import { useQuery } from '@tanstack/react-query'
import { api, take } from '@/api/client'
import { useT } from '@/shared/i18n'
import { Diff } from '@/shared/ui/Diff'
import { Loading } from '@/shared/ui/parts'
import { Trouble } from './marks'
import { LOG_BYTES, readLog } from './queries'

export interface AttemptOf {
  id: number
  started_at: string | null
}

/** null: there is none on that side. */
export function AttemptDiff({ one, other }: { one: AttemptOf | null; other: AttemptOf | null }) {
  const t = useT()
  const a = useText(one)
  const b = useText(other)
  const error = a.error ?? b.error
  if (error) return <Trouble error={error} />
  if (!a.data || !b.data) return <Loading rows={6} />
  return (
    <>
      <h3>{t('compare.script')}</h3>
      <Diff before={a.data.script} after={b.data.script} same={t('compare.sameText')} />
      <h3 className="spaced">{t('compare.log')}</h3>
      <Diff before={a.data.log} after={b.data.log} same={t('compare.sameText')} />
    </>
  )
}

function useText(of: AttemptOf | null) {
  return useQuery({
    queryKey: ['task', of?.id ?? 0, 'text'],
    queryFn: async () => {
      if (!of) return { script: '', log: '' }
      const { params } = await take(api.GET('/api/v1/task-instances/{task_instance_id}/rendered', { params: { path: { task_instance_id: of.id } } }))
      // Of one that never began, or whose worker is gone, there is no log to compare.
      const log = of.started_at ? await readLog(of.id, -LOG_BYTES, LOG_BYTES).catch(() => null) : null
      return { script: paramsText(params), log: log?.data ?? '' }
    },
  })
}

/** Returns params as lines; what has several lines stays as it is. */
export function paramsText(params: Record<string, unknown>): string {
  return Object.entries(params)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => (typeof value === 'string' ? (value.includes('\n') ? `${name}:\n${value}` : `${name}: ${value}`) : `${name}: ${JSON.stringify(value)}`))
    .join('\n')
}

