/** One message: where it went, what it tells of, and each try to send it. */
import { useQuery } from '@tanstack/react-query'
import { Drawer } from 'antd'
import type { AlertDelivery } from '@/api/types'
import { useNamed, useT } from '@/shared/i18n'
import { durationText } from '@/shared/time/format'
import { Time } from '@/shared/time/Time'
import { useWidth } from '@/shared/ui/DataTable'
import { Facts } from '@/shared/ui/parts'
import { AlertMark } from '../looks'
import { delivery as deliveryOf } from '../queries'

const MOST_SHOWN = 20 // alerts of one message

interface Props {
  project: string
  delivery: AlertDelivery
  onAlert: (id: number) => void
  onClose: () => void
}

export function MessageDrawer({ project, delivery, onAlert, onClose }: Props) {
  const t = useT()
  const named = useNamed()
  const width = useWidth()
  const { data } = useQuery(deliveryOf(project, delivery.id))
  const now = data ?? delivery
  return (
    <Drawer open onClose={onClose} size={Math.min(width, 560)} title={t('alerts.message.one', { id: now.id })} destroyOnHidden>
      <div className="stack">
        <AlertMark state={now.state} />
        <Facts
          items={[
            [t('alerts.kind'), named('alerts.kind', now.kind)],
            [t('alerts.rule'), <code key="u">{now.rule || '–'}</code>],
            [t('alerts.receiver'), <code key="r">{now.receiver || '–'}</code>],
            [t('alerts.channel'), <code key="c">{now.channel}</code>],
            [t('alerts.addresses'), now.recipients.length ? <span key="a" className="mono">{now.recipients.join(', ')}</span> : '–'],
            [t('alerts.tellsOf'), data?.alerts.length ? <span key="l" className="verdict-alert">{data.alerts.slice(0, MOST_SHOWN).map((id) => <button key={id} type="button" className="link num" onClick={() => onAlert(id)}>#{id}</button>)}{data.alerts.length > MOST_SHOWN ? t('command.others', { count: data.alerts.length - MOST_SHOWN }) : null}</span> : '–'],
            [t('common.created'), <Time key="t" at={now.created_at} />],
            [t('alerts.dueAt'), <Time key="d" at={now.due_at} />],
            [t('alerts.sentAt'), <Time key="s" at={now.sent_at} />],
          ]}
        />
        <h2 className="form-head">{t('alerts.triesOf')}</h2>
        {data?.attempts.length ? (
          <ol className="deliveries">
            {data.attempts.map((attempt) => (
              <li key={attempt.number} className="delivery" data-try={attempt.is_sent ? 'ok' : 'bad'}>
                <AlertMark state={attempt.is_sent ? 'SENT' : 'FAILED'} />
                <div className="delivery-text">
                  <span className="dim small"><Time at={attempt.at} /> · {durationText(attempt.took_s * 1000)}</span>
                  <code className={attempt.is_sent ? 'dim keep-lines' : 'bad-text keep-lines'}>{attempt.answer}</code>
                </div>
              </li>
            ))}
          </ol>
        ) : (
          <p className="dim">{t('alerts.answer.none')}</p>
        )}
      </div>
    </Drawer>
  )
}
