/** Why somebody was told of what happened in a run, or nobody: what each rule made of it. */
import { Link } from '@tanstack/react-router'
import { InputNumber } from 'antd'
import { useEffect, useState } from 'react'
import type { AlertExplanation } from '@/api/types'
import { useRows } from '@/entities/lists'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { Empty, Loading, Panel } from '@/shared/ui/parts'
import { Subject } from '../history/History'
import { AlertMark, useTrigger } from '../looks'
import { explanations } from '../queries'

interface Props {
  project: string
  run: number | undefined
  onRun: (run: number | undefined) => void
  onOpen: (alert: number) => void
}

export function Why({ project, run, onRun, onOpen }: Props) {
  const t = useT()
  const [typed, setTyped] = useState<number | null>(run ?? null)
  useEffect(() => setTyped(run ?? null), [run])
  return (
    <div className="stack">
      <p className="lead">{t('alerts.why.text')}</p>
      <div className="row">
        <label htmlFor="why-run">{t('alerts.run')}</label>
        <span data-search><InputNumber id="why-run" className="why-run" min={1} precision={0} controls={false} placeholder="17" value={typed} onChange={setTyped} onPressEnter={() => onRun(typed ?? undefined)} onBlur={() => typed !== (run ?? null) && onRun(typed ?? undefined)} /></span>
        {run ? <Link to="/runs/$id" params={{ id: String(run) }}>{t('run.title', { id: run })}</Link> : null}
      </div>
      {run ? <Events key={run} project={project} run={run} onOpen={onOpen} /> : null}
    </div>
  )
}

function Events({ project, run, onOpen }: { project: string; run: number; onOpen: (alert: number) => void }) {
  const t = useT()
  const list = useRows<AlertExplanation>(explanations(project, run))
  if (list.error && !list.rows.length) return <Trouble error={list.error} retry={list.again} />
  if (list.isPending) return <Loading rows={6} />
  return (
    <>
      {list.rows.length ? list.rows.map((one) => <Event key={one.event_id} explanation={one} onOpen={onOpen} />) : <Empty title={t('alerts.why.none')}>{t('alerts.why.none.text')}</Empty>}
      {list.hasMore ? <div><button type="button" className="link" onClick={list.more}>{t('common.more')}</button></div> : null}
    </>
  )
}

function Event({ explanation, onOpen }: { explanation: AlertExplanation; onOpen: (alert: number) => void }) {
  const t = useT()
  const wordsOf = useTrigger()
  const { trigger, at, reason } = explanation
  const rules = explanation.rules.toSorted((a, b) => Number(b.alert !== null) - Number(a.alert !== null)) // those that made an alert first
  return (
    <div data-explained={trigger}>
      <Panel title={<>{wordsOf(trigger)} <span className="dim">· <Subject alert={explanation} /></span></>} aside={<span className="dim small"><Time at={at} /></span>}>
        {reason ? <p className="dim wrap-any">{reason}</p> : null}
        {rules.length ? (
          <ul className="verdicts">
            {rules.map(({ rule, reason: why, alert }) => (
              <li key={rule} className="verdict" data-verdict={alert ? 'alert' : 'none'}>
                <code className="cut" title={rule}>{rule}</code>
                {alert ? (
                  <span className="verdict-alert">
                    <AlertMark state={alert.state} isAlert />
                    <button type="button" className="link" onClick={() => onOpen(alert.id)}>{t('alerts.one', { id: alert.id })}</button>
                    <span className="dim">{told(alert.deliveries) || t(alert.silenced_by ? 'alerts.told.silenced' : 'alerts.told.notYet')}</span>
                  </span>
                ) : (
                  <span className="dim wrap-any">{why}</span>
                )}
              </li>
            ))}
          </ul>
        ) : (
          <p className="dim">{t('alerts.why.noRules')}</p>
        )}
      </Panel>
    </div>
  )
}

/** Returns who was told, by the names of receivers. */
function told(deliveries: readonly { receiver: string; state: string }[]): string {
  return [...new Set(deliveries.filter((one) => one.state === 'SENT').map((one) => one.receiver))].join(', ')
}
