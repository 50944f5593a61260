/** How alerts and messages are marked: a glyph that carries the meaning, a colour that repeats it. */
import type { Alert, AlertDelivery } from '@/api/types'
import type { Look } from '@/entities/states'
import { useNamed } from '@/shared/i18n'

type State = Alert['state'] | AlertDelivery['state']

const STATES: Record<State, Look> = {
  OPEN: { glyph: '!', tone: 'failed' },
  RESOLVED: { glyph: '✓', tone: 'succeeded' },
  TOLD: { glyph: 'i', tone: 'queued' },
  PENDING: { glyph: '◔', tone: 'waiting' },
  SENDING: { glyph: '▶', tone: 'running' },
  SENT: { glyph: '✓', tone: 'succeeded' },
  FAILED: { glyph: '✕', tone: 'failed' },
  WITHDRAWN: { glyph: '⤼', tone: 'skipped' },
  SILENCED: { glyph: '‖', tone: 'paused' },
}

const SEVERITIES: Record<Alert['severity'], Look> = {
  info: { glyph: '▁', tone: 'queued' },
  warning: { glyph: '▃', tone: 'retry' },
  critical: { glyph: '▇', tone: 'failed' },
}

export function AlertMark({ state, isAlert = false }: { state: State; isAlert?: boolean }) {
  const named = useNamed()
  return <Mark look={STATES[state]} text={named(isAlert ? 'alerts.state' : 'alerts.message', state)} state={state} />
}

export function SeverityMark({ severity }: { severity: Alert['severity'] }) {
  const named = useNamed()
  return <Mark look={SEVERITIES[severity]} text={named('alerts.severity', severity)} state={severity} />
}

function Mark({ look, text, state }: { look: Look; text: string; state: string }) {
  return (
    <span className={`state tone-${look.tone}`} data-state={state}>
      <span className="glyph" aria-hidden>{look.glyph}</span>
      <span>{text}</span>
    </span>
  )
}

/** Returns the words for a trigger. */
export function useTrigger(): (trigger: string) => string {
  const named = useNamed()
  return (trigger) => named('alerts.trigger', trigger)
}
