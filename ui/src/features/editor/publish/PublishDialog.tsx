/** What publishing would do, before it is done: problems, differences, fire times, runs that go on. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Alert, Modal } from 'antd'
import { useState } from 'react'
import { ApiProblem } from '@/api/client'
import type { SchedulePlan, WorkflowPlan } from '@/api/types'
import { Comparing } from '@/entities/Comparing'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { timeText } from '@/shared/time/format'
import { Loading } from '@/shared/ui/parts'
import type { Trouble as Problem } from '../problems'
import { planOf } from '../queries'

interface Props {
  project: string
  name: string
  text: string
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
  troubles: readonly Problem[]
  onClose: () => void
  /** Returns whether it is published. */
  onPublish: () => Promise<void>
  onProblem: (problem: Problem) => void
}

export function PublishDialog({ project, name, text, before, after, troubles, onClose, onPublish, onProblem }: Props) {
  const t = useT()
  const plan = useQuery({ ...planOf(project, name, text), enabled: troubles.length === 0 })
  const [isSending, setSending] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  const [isOpen, setOpen] = useState(false) // pictures are measured, so they wait until the window stands
  const isNothing = plan.data !== undefined && !plan.data.created
  const publish = async (): Promise<void> => {
    setSending(true)
    setError(null)
    try {
      await onPublish()
    } catch (caught) {
      setError(caught instanceof ApiProblem ? caught : new Error(String(caught)))
    } finally {
      setSending(false)
    }
  }
  const isRefused = troubles.length > 0 || plan.error !== null
  return (
    <Modal
      open
      width={860}
      title={plan.data?.created ? t('publish.titleVersion', { name, version: plan.data.version }) : t('publish.title', { name })}
      okText={t('publish.ok')}
      cancelText={t('common.cancel')}
      onOk={() => void publish()}
      onCancel={onClose}
      afterOpenChange={setOpen}
      okButtonProps={{ disabled: isRefused || !plan.data || isNothing, loading: isSending }}
      destroyOnHidden
    >
      <div className="stack publish">
        {error ? <Trouble error={error} /> : null}
        {troubles.length ? (
          <Alert type="error" showIcon title={t('publish.problems', { count: troubles.length })} description={<ul className="problem-list">{troubles.slice(0, 20).map((one, at) => <li key={at}><button type="button" className="link" onClick={() => onProblem(one)}><code>{one.key || name}</code> {one.message}{one.line === null ? '' : ` · ${t('problems.line', { line: one.line })}`}</button></li>)}</ul>} />
        ) : plan.error ? <Trouble error={plan.error} retry={() => void plan.refetch()} /> : null}
        {(plan.isPending || !isOpen) && !isRefused ? <Loading rows={8} /> : null}
        {isNothing ? <Alert type="info" showIcon title={t('publish.nothing')} /> : null}
        {plan.data?.created && isOpen ? <Plan plan={plan.data} before={before} after={after} /> : null}
      </div>
    </Modal>
  )
}

function Plan({ plan, before, after }: { plan: WorkflowPlan; before: Record<string, unknown> | null; after: Record<string, unknown> | null }) {
  const t = useT()
  const schedules = plan.schedules.filter((one) => one.change !== 'kept')
  const { hanging } = plan
  return (
    <>
      <Comparing comparison={plan.comparison} before={before} after={after} />
      {schedules.length ? (
        <section>
          <h2>{t('publish.fires')}</h2>
          {schedules.map((one, at) => <FireChange key={at} plan={one} />)}
        </section>
      ) : null}
      {hanging.open_runs ? <p className="reason">{t('publish.runs', { count: hanging.open_runs })} {hanging.open_run_ids.slice(0, 5).map((id) => <Link key={id} to="/runs/$id" params={{ id: String(id) }}>#{id} </Link>)}</p> : null}
      {hanging.downstream.length ? <p className="reason">{t('publish.named', { names: hanging.downstream.map((one) => `${one.project}/${one.workflow}`).join(', ') })}</p> : null}
    </>
  )
}

function FireChange({ plan }: { plan: SchedulePlan }) {
  const t = useT()
  const { language } = useSettings()
  const times = (side: SchedulePlan['before'], other: SchedulePlan['before'], mark: string) =>
    side ? (
      <ol className="fires">
        {side.next_fire_times.map((time) => {
          const isNew = !other?.next_fire_times.includes(time)
          return <li key={time} className={isNew ? mark : undefined}><span className="num">{timeText(time, side.timezone, language)}</span></li>
        })}
        {side.next_fire_times.length ? null : <li className="dim">{t('publish.noFires')}</li>}
      </ol>
    ) : <p className="dim">–</p>
  return (
    <div className="fire-change">
      <p><strong>{t(`publish.${plan.change}`)}</strong> <code>{plan.before?.cron}</code>{plan.before && plan.after && plan.before.cron !== plan.after.cron ? ' → ' : ' '}{plan.before?.cron === plan.after?.cron ? null : <code>{plan.after?.cron}</code>}</p>
      <div className="columns">
        <div><h3>{t('publish.before')}</h3>{times(plan.before, plan.after, 'removed')}</div>
        <div><h3>{t('publish.after')}</h3>{times(plan.after, plan.before, 'added')}</div>
      </div>
    </div>
  )
}
