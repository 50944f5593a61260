/** The schedules of the text: when would they fire, as the server says, beside when they fire now. */
import { DeleteOutlined, PlusOutlined } from '@ant-design/icons'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Button, Checkbox, Input, InputNumber, Segmented, Select, Tag } from 'antd'
import { useMemo } from 'react'
import { parse as readYaml, stringify } from 'yaml'
import type { FireTime } from '@/api/types'
import { SCHEDULE_FIELDS, WORKFLOW_ORDER } from '@/definition/fields'
import { isPlain, valueAt, type Plain } from '@/definition/parse'
import { insert, set, unset } from '@/definition/patch'
import { Trouble as Failure } from '@/entities/marks'
import { useNamed, useT, type TextKey } from '@/shared/i18n'
import { BufferedInput } from '@/shared/schema-form/BufferedInput'
import { useTranslated } from '@/shared/i18n/useFieldTexts'
import { SchemaForm, type FormPath } from '@/shared/schema-form/SchemaForm'
import { useSettings } from '@/shared/settings'
import { timeText } from '@/shared/time/format'
import { Empty, Loading, Panel } from '@/shared/ui/parts'
import { problemAt, type Trouble } from '../problems'
import { firesOf, type PreviewAsked } from '../queries'
import type { Session, SessionState } from '../session'
import type { ProjectNames } from '../useNames'
import { cronOf, rhythmOf, turned, type Rhythm } from './cron'

interface Props {
  session: Session
  state: SessionState
  published: Plain | null
  troubles: readonly Trouble[]
  names: ProjectNames
  onTell: (error: unknown) => void
}

const KINDS = ['minutes', 'hours', 'days', 'weekdays', 'months', 'other'] as const
const SHOWN = 12

export function SchedulesView(props: Props) {
  const t = useT()
  const { session, state, onTell } = props
  const list = state.good.value?.schedules
  const schedules = Array.isArray(list) ? list.filter(isPlain) : []
  const isFrozen = state.refusal !== null || state.parsed.mistakes.length > 0
  const add = (): void => {
    try {
      const fresh = { cron: '0 0 6 * * ?' }
      session.change('edit.schedule', (parsed) => (schedules.length ? insert(parsed, ['schedules'], schedules.length, fresh) : set(parsed, ['schedules'], [fresh], WORKFLOW_ORDER)))
    } catch (error) {
      onTell(error)
    }
  }
  const button = <Button type={schedules.length ? 'default' : 'primary'} icon={<PlusOutlined />} disabled={isFrozen} title={state.refusal ?? undefined} onClick={add}>{t('schedule.add')}</Button>
  return (
    <div className="stack schedules">
      {schedules.length ? null : <Empty title={t('schedule.none')} action={button}><p>{t('schedule.none.detail')}</p></Empty>}
      {schedules.map((one, index) => <OneSchedule key={index} {...props} schedule={one} index={index} isFrozen={isFrozen} />)}
      {schedules.length ? <div>{button}</div> : null}
    </div>
  )
}

function OneSchedule({ session, state, published, troubles, names, onTell, schedule, index, isFrozen }: Props & { schedule: Plain; index: number; isFrozen: boolean }) {
  const t = useT()
  const base: FormPath = ['schedules', index]
  const put = (path: FormPath, value: unknown): void => {
    try {
      session.change('edit.schedule', (parsed) => {
        const whole = [...base, ...path]
        return value === undefined ? unset(parsed, whole) : set(parsed, whole, value, ['cron', 'timezone'])
      }, { group: [...base, ...path].join('.') })
    } catch (error) {
      onTell(error)
    }
  }
  const cron = textOf(schedule.cron)
  const zone = textOf(schedule.timezone) || textOf(state.good.value?.timezone) || 'UTC'
  const now = askedOf(schedule, zone)
  const old = valueAt(published, ['schedules', index])
  const before = isPlain(old) ? askedOf(old, textOf(old.timezone) || textOf(published?.timezone) || 'UTC') : null
  const properties = useTranslated(SCHEDULE_FIELDS)
  const own = Object.fromEntries(Object.entries(schedule).filter(([name]) => !['cron', 'timezone', 'on_gap', 'on_overlap'].includes(name)))
  const problem = problemAt(troubles, [...base, 'cron']) ?? problemAt(troubles, base)
  return (
    <Panel title={<span className="schedule-title">{t('schedule.title', { number: index + 1 })} <code>{cron}</code></span>} aside={<Button size="small" type="text" danger icon={<DeleteOutlined />} disabled={isFrozen} aria-label={t('schedule.remove', { number: index + 1 })} onClick={() => put([], undefined)} />}>
      <div className="schedule">
        <div className="form-fields">
          <Rhythms cron={cron} isFrozen={isFrozen} onCron={(value) => put(['cron'], value)} />
          <div className={problem ? 'form-field bad' : 'form-field'}>
            <label className="form-label" htmlFor={`cron-${index}`}>{t('schedule.cron')}</label>
            <BufferedInput id={`cron-${index}`} value={cron} isDisabled={isFrozen} onCommit={(value) => put(['cron'], value)} />
            {problem ? <p className="form-problem" role="alert">{problem}</p> : null}
          </div>
          <div className="form-field">
            <label className="form-label" htmlFor={`zone-${index}`}>{t('workflow.zone')}</label>
            <Select id={`zone-${index}`} size="small" showSearch allowClear className="full" disabled={isFrozen} value={textOf(schedule.timezone) || null} placeholder={t('schedule.zoneOf', { zone })} options={(names.optionsOf({ to: 'zone' }) ?? []).map((value) => ({ value, label: value }))} onChange={(value: string | null | undefined) => put(['timezone'], value ?? undefined)} />
          </div>
          <div className="two">
            <Policy label={t('schedule.gap')} help={t('schedule.gapHelp')} name="on_gap" options={['shift', 'skip']} value={schedule.on_gap} isFrozen={isFrozen} onChange={(value) => put(['on_gap'], value)} />
            <Policy label={t('schedule.overlap')} help={t('schedule.overlapHelp')} name="on_overlap" options={['first', 'last', 'both']} value={schedule.on_overlap} isFrozen={isFrozen} onChange={(value) => put(['on_overlap'], value)} />
          </div>
          <SchemaForm
            isDisabled={isFrozen}
            onChange={put}
            problemAt={(path) => problemAt(troubles, [...base, ...path])}
            optionsOf={names.optionsOf}
            script={() => null}
            writeAny={(value) => stringify(value).trimEnd()}
            readAny={(text) => readYaml(text) as unknown}
            properties={properties}
            value={own}
            first={['missed', 'calendar']}
          />
        </div>
        <div className="schedule-fires">
          <h3>{t('workflow.fires')} ({zone})</h3>
          {cron ? <Fires project={session.project} now={now} before={before} zone={zone} /> : null}
        </div>
      </div>
    </Panel>
  )
}

function Policy({ label, help, name, options, value, isFrozen, onChange }: { label: string; help: string; name: string; options: readonly string[]; value: unknown; isFrozen: boolean; onChange: (value: string | undefined) => void }) {
  const t = useT()
  const named = useNamed()
  return (
    <div className="form-field">
      <span className="form-label">{label}</span>
      <Select size="small" className="full" aria-label={label} disabled={isFrozen} value={typeof value === 'string' ? value : ''} options={[{ value: '', label: t('schedule.byExpression') }, ...options.map((one) => ({ value: one, label: named(name, one) }))]} onChange={(next: string) => onChange(next || undefined)} />
      <p className="form-help">{help}</p>
    </div>
  )
}

/** The cron expression as fields: how often, and when. */
function Rhythms({ cron, isFrozen, onCron }: { cron: string; isFrozen: boolean; onCron: (cron: string) => void }) {
  const t = useT()
  const { language } = useSettings()
  const rhythm = rhythmOf(cron)
  const put = (next: Rhythm): void => {
    const written = cronOf(next)
    if (written !== null) onCron(written)
  }
  const week = useMemo(() => Array.from({ length: 7 }, (_, day) => new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en', { weekday: 'short', timeZone: 'UTC' }).format(Date.UTC(2023, 0, 1 + day))), [language])
  const number = (label: TextKey, value: number, min: number, max: number, change: (value: number) => void) => (
    <label className="rhythm-part">{t(label)} <InputNumber size="small" min={min} max={max} precision={0} disabled={isFrozen} value={value} onChange={(next) => next !== null && change(next)} /></label>
  )
  const time = 'hour' in rhythm ? (
    <label className="rhythm-part">{t('rhythm.at')} <Input size="small" type="time" disabled={isFrozen} value={`${String(rhythm.hour).padStart(2, '0')}:${String(rhythm.minute).padStart(2, '0')}`} onChange={(event) => {
      const [hour, minute] = event.target.value.split(':').map(Number)
      if (hour !== undefined && minute !== undefined && Number.isFinite(hour + minute)) put({ ...rhythm, hour, minute })
    }} /></label>
  ) : null
  return (
    <div className="form-field">
      <span className="form-label">{t('schedule.rhythm')}</span>
      <Segmented<Rhythm['kind']> size="small" aria-label={t('schedule.rhythm')} disabled={isFrozen} value={rhythm.kind} onChange={(kind) => put(turned(rhythm, kind))} options={KINDS.map((value) => ({ value, label: t(`rhythm.${value}`), disabled: value === 'other' && rhythm.kind !== 'other' }))} />
      <div className="rhythm">
        {rhythm.kind === 'minutes' ? number('rhythm.everyMinutes', rhythm.every, 1, 59, (every) => put({ ...rhythm, every })) : null}
        {rhythm.kind === 'hours' ? <>{number('rhythm.everyHours', rhythm.every, 1, 23, (every) => put({ ...rhythm, every }))}{number('rhythm.minute', rhythm.minute, 0, 59, (minute) => put({ ...rhythm, minute }))}</> : null}
        {rhythm.kind === 'weekdays' ? <Checkbox.Group aria-label={t('rhythm.weekdays')} disabled={isFrozen} value={[...rhythm.days]} options={week.map((label, at) => ({ label, value: at + 1 }))} onChange={(days) => days.length && put({ ...rhythm, days: days.toSorted((a, b) => a - b) })} /> : null}
        {rhythm.kind === 'months' ? <label className="rhythm-part">{t('rhythm.day')} <Select size="small" disabled={isFrozen} value={rhythm.day} onChange={(day) => put({ ...rhythm, day })} options={[...Array.from({ length: 31 }, (_, at) => ({ value: at + 1, label: String(at + 1) })), { value: 'L' as const, label: t('rhythm.last') }]} /></label> : null}
        {time}
        {rhythm.kind === 'other' ? <span className="dim small">{t('rhythm.otherHelp')}</span> : null}
      </div>
    </div>
  )
}

/** The next fire times, with what is new and what falls away against those that are published. */
function Fires({ project, now, before, zone }: { project: string; now: PreviewAsked; before: PreviewAsked | null; zone: string }) {
  const t = useT()
  const named = useNamed()
  const { language } = useSettings()
  const isSame = before !== null && JSON.stringify(before) === JSON.stringify(now)
  const found = useQuery({ ...firesOf(project, now, SHOWN), placeholderData: keepPreviousData })
  const old = useQuery({ ...firesOf(project, before ?? now, SHOWN), enabled: before !== null && !isSame })
  if (found.error) return <Failure error={found.error} />
  if (!found.data) return <Loading rows={5} />
  const lines: (FireTime & { change?: 'added' | 'removed' })[] = found.data.fire_times.map((one) => ({ ...one }))
  if (before && !isSame && old.data) {
    const [was, is] = [new Set(old.data.fire_times.map((one) => one.utc)), new Set(lines.map((one) => one.utc))]
    const last = lines.at(-1)?.utc ?? ''
    for (const line of lines) if (!was.has(line.utc)) line.change = 'added'
    lines.push(...old.data.fire_times.filter((one) => !is.has(one.utc) && one.utc <= last).map((one) => ({ ...one, change: 'removed' as const })))
    lines.sort((a, b) => (a.utc < b.utc ? -1 : 1))
  }
  return (
    <>
      <ol className="fires" data-fires>
        {lines.map((line, at) => (
          <li key={`${line.utc}${at}`} className={[line.fires ? '' : 'left-out', line.change ?? ''].join(' ')}>
            <span className="fire-mark" aria-hidden>{line.change === 'added' ? '+' : line.change === 'removed' ? '−' : ''}</span>
            <span className="num">{timeText(line.utc, zone, language)}</span>
            {line.marks.map((mark) => <Tag key={mark} color="warning">{named('fire', mark)}</Tag>)}
            {line.change ? <span className="hidden">{t(`publish.${line.change}`)}</span> : null}
          </li>
        ))}
      </ol>
      {lines.length ? null : <p className="dim">{t('publish.noFires')}</p>}
      {before && !isSame ? <p className="dim small">{t('schedule.compared')}</p> : null}
    </>
  )
}

function askedOf(schedule: Plain, zone: string): PreviewAsked {
  const text = (name: string): string | null => (typeof schedule[name] === 'string' ? schedule[name] : null)
  return {
    cron: textOf(schedule.cron),
    timezone: zone,
    on_gap: text('on_gap') as PreviewAsked['on_gap'] ?? null,
    on_overlap: text('on_overlap') as PreviewAsked['on_overlap'] ?? null,
    start: text('start'),
    end: text('end'),
    exclude: Array.isArray(schedule.exclude) ? schedule.exclude.map(textOf) : [],
    calendar: text('calendar'),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
}
