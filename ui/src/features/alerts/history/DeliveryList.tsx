/** The messages about one alert, the first one first. */
import type { AlertDelivery } from '@/api/types'
import { useNamed, useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { AlertMark } from '../looks'

export function DeliveryList({ deliveries }: { deliveries: readonly AlertDelivery[] }) {
  const t = useT()
  if (!deliveries.length) return <p className="dim">{t('alerts.deliveries.none')}</p>
  return (
    <ul className="deliveries">
      {deliveries.map((delivery) => <Item key={delivery.id} delivery={delivery} />)}
    </ul>
  )
}

function Item({ delivery }: { delivery: AlertDelivery }) {
  const t = useT()
  const named = useNamed()
  return (
    <li className="delivery" data-delivery={delivery.state}>
      <AlertMark state={delivery.state} />
      <div className="delivery-text">
        <span>
          <span className="strong">{delivery.receiver || t('alerts.test.kind')}</span>
          <span className="dim"> · {delivery.channel}{delivery.recipients.length ? ` · ${delivery.recipients.join(', ')}` : ''}</span>
        </span>
        <span className="dim small">
          {named('alerts.kind', delivery.kind)} · <DeliveryTime delivery={delivery} />{delivery.tries > 1 ? ` · ${t('alerts.tries', { count: delivery.tries })}` : ''}
        </span>
        {delivery.answer ? <code className={delivery.state === 'FAILED' ? 'bad-text wrap-any' : 'dim wrap-any'}>{delivery.answer}</code> : null}
      </div>
    </li>
  )
}

/** When a message was sent, or is to be. */
export function DeliveryTime({ delivery }: { delivery: AlertDelivery }) {
  const t = useT()
  if (delivery.sent_at) return <Time at={delivery.sent_at} />
  if (delivery.state === 'PENDING') return <>{t('alerts.due')} <Time at={delivery.due_at} /></>
  return <Time at={delivery.created_at} />
}
