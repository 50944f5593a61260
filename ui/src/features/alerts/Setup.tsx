/** What is to be defined before anybody is told of anything, step by step, with the button for the next one. */
import { CheckCircleFilled } from '@ant-design/icons'
import type { AlertChannel, AlertReceiver, AlertRule } from '@/api/types'
import { useRows } from '@/entities/lists'
import { Act, Trouble, useRefusal } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { Empty, Loading } from '@/shared/ui/parts'
import { channels, receivers, rules } from './queries'

export type Step = 'channels' | 'receivers' | 'rules'

export function Setup({ project, onGo }: { project: string; onGo: (step: Step, open: string) => void }) {
  const t = useT()
  const lists = {
    channels: useRows<AlertChannel>(channels.list(project)),
    receivers: useRows<AlertReceiver>(receivers.list(project)),
    rules: useRows<AlertRule>(rules.list(project)),
  }
  const refusals = { channels: useRefusal('connection.edit', project), receivers: useRefusal('project.edit', project), rules: useRefusal('project.edit', project) }
  const steps = ['channels', 'receivers', 'rules'] as const
  const failed = steps.map((step) => lists[step].error).find(Boolean)
  if (failed) return <Trouble error={failed} />
  if (steps.some((step) => lists[step].isPending)) return <Loading rows={6} />
  const next = steps.find((step) => !lists[step].rows.length)
  if (!next) return <Empty title={t('alerts.history.none')}>{t('alerts.history.none.text')}</Empty>
  return (
    <Empty title={t('alerts.setup')} action={<Act type="primary" refusal={refusals[next]} onClick={() => onGo(next, 'new')}>{t(`alerts.${next}.add`)}</Act>}>
      <ol className="setup-steps">
        {steps.map((step, index) => {
          const isDone = lists[step].rows.length > 0
          return (
            <li key={step} className={step === next ? 'setup-step next' : 'setup-step'} aria-current={step === next ? 'step' : undefined}>
              <span className="setup-number num" aria-hidden>{isDone ? <CheckCircleFilled /> : index + 1}</span>
              <span className="two-lines">
                <span className="strong">{t(`alerts.setup.${step}`)}{isDone ? <span className="hidden"> {t('alerts.setup.done')}</span> : null}</span>
                <span className="dim small">{t(`alerts.${step}.text`)}</span>
              </span>
            </li>
          )
        })}
      </ol>
    </Empty>
  )
}
