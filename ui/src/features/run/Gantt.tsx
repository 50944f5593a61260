/** When the tasks of a run ran, with the critical path, and idle times drawn short. */
import { useMemo } from 'react'
import type { InstanceTask } from '@/api/types'
import { lookOf, taskHasEnded } from '@/entities/states'
import { shortened } from '@/graph/names'
import { axisOf, criticalPath, type Span } from '@/graph/timeline'
import { useT } from '@/shared/i18n'
import { clockText, durationText } from '@/shared/time/format'
import { useSettings } from '@/shared/settings'
import { useNow, useZone } from '@/shared/time/Time'
import { Empty } from '@/shared/ui/parts'

interface Props {
  tasks: readonly InstanceTask[]
  zone: string
  onChoose: (task: string) => void
}

export function spansOf(tasks: readonly InstanceTask[]): Span[] {
  const time = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso))
  return tasks.map((task) => ({
    name: task.task,
    dependsOn: task.depends_on,
    start: time(task.started_at),
    end: taskHasEnded(task.state) ? (time(task.finished_at) ?? time(task.started_at)) : null,
  }))
}

const SECONDS_BELOW_MS = 600_000 // a shorter run has its start and end to the second

export function Gantt({ tasks, zone, onChoose }: Props) {
  const t = useT()
  const { language } = useSettings()
  const shownZone = useZone(zone)
  const spans = useMemo(() => spansOf(tasks), [tasks])
  const now = useNow(spans.some((span) => span.start !== null && span.end === null))
  const axis = axisOf(spans, now)
  const path = criticalPath(spans, now)
  const onPath = new Set(path)
  const started = spans.filter((span) => span.start !== null)
  if (!started.length) return <Empty title={t('run.notStarted')} />
  const first = Math.min(...started.map((span) => span.start ?? Infinity))
  const last = Math.max(...started.map((span) => span.end ?? now))
  const isShort = last - first < SECONDS_BELOW_MS
  const percent = (value: number): string => `${((100 * value) / axis.length).toFixed(3)}%`
  const states = new Map(tasks.map((task) => [task.task, task.state]))
  const ordered = [...spans].sort((a, b) => (a.start ?? Infinity) - (b.start ?? Infinity))
  const lasted = path.reduce((sum, name) => {
    const span = spans.find((one) => one.name === name)
    return sum + (span?.start != null ? (span.end ?? now) - span.start : 0)
  }, 0)
  return (
    <div className="gantt">
      <div className="gantt-head">
        <span>
          <span className="gantt-key" /> {t('run.critical')} <strong className="num">{durationText(lasted)}</strong>
        </span>
        <span className="dim">{path.map((name) => shortened(name)).join(' → ')}</span>
      </div>
      <div className="gantt-rows">
        <div className="gantt-axis">
          <span className="num">{clockText(new Date(first).toISOString(), shownZone, language, isShort)}</span>
          <span className="dim">{shownZone}</span>
          <span className="num">{clockText(new Date(last).toISOString(), shownZone, language, isShort)}</span>
        </div>
        {ordered.map((span) => {
          const state = states.get(span.name) ?? 'WAITING'
          const look = lookOf(state)
          const start = span.start === null ? null : axis.at(span.start)
          const end = span.start === null ? null : axis.at(span.end ?? now)
          const length = span.start === null ? '' : durationText((span.end ?? now) - span.start)
          return (
            <button type="button" key={span.name} className={`gantt-row tone-${look.tone} ${onPath.has(span.name) ? 'critical' : ''}`} onClick={() => onChoose(span.name)} title={`${span.name} · ${state} · ${length}`}>
              <span className="gantt-name">
                <span className="glyph" aria-hidden>{look.glyph}</span> {shortened(span.name)}
              </span>
              <span className="gantt-track">
                {axis.gaps.map((gap) => (
                  <span key={gap.at} className="gantt-gap" style={{ left: percent(gap.at), width: percent(gap.width) }} title={t('run.idle', { time: durationText(gap.lasted) })} />
                ))}
                {start === null || end === null ? null : (
                  <>
                    <span className="gantt-bar" style={{ left: percent(start), width: `max(3px, ${percent(end - start)})` }} />
                    <span className={end > axis.length * 0.8 ? 'gantt-length before' : 'gantt-length'} style={end > axis.length * 0.8 ? { right: `calc(100% - ${percent(start)} + 6px)` } : { left: `calc(${percent(end)} + 6px)` }}>{length}</span>
                  </>
                )}
              </span>
            </button>
          )
        })}
      </div>
    </div>
  )
}
