/** What one attempt of a task did: log, why, outputs, details. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Drawer, Progress as Bar, Select, Tabs } from 'antd'
import type { ReactNode } from 'react'
import { AttemptDiff } from '@/entities/AttemptDiff'
import { attempts as attemptsOf, progress as progressOf, rendered, task as taskOf, whyTask } from '@/entities/queries'
import { Findings, StateMark, Trouble } from '@/entities/marks'
import { taskHasEnded } from '@/entities/states'
import { useSaid, useT } from '@/shared/i18n'
import '@/shared/i18n/attempt'
import '@/shared/i18n/run'
import { bytesText, durationText } from '@/shared/time/format'
import { Lasting, Time } from '@/shared/time/Time'
import { Code, Empty, Facts, Loading } from '@/shared/ui/parts'
import { useWidth } from '@/shared/ui/DataTable'
import { LogView } from './LogView'

export type AttemptTab = 'log' | 'script' | 'why' | 'outputs' | 'details' | 'changes'

interface Props {
  run: number
  zone: string
  name: string
  attempt: number | undefined
  tab: AttemptTab | undefined
  byte: number | undefined
  onChange: (to: { attempt?: number | undefined; panel?: AttemptTab | undefined; byte?: number | undefined }) => void
  onClose: () => void
  actions: (task: { id: number; task: string; state: string }) => ReactNode
}

export function Attempt({ run, zone, name, attempt, tab, byte, onChange, onClose, actions }: Props) {
  const t = useT()
  const said = useSaid()
  const width = useWidth()
  const { data, error } = useQuery(attemptsOf(run))
  const own = data?.tasks.filter((task) => task.task === name).sort((a, b) => a.attempt - b.attempt) ?? []
  const shown = own.find((task) => task.attempt === attempt) ?? own.at(-1)
  const before = shown ? own.filter((task) => task.attempt < shown.attempt).at(-1) : undefined
  const title = (
    <div className="attempt-title">
      <span className="mono">{name}</span>
      {shown ? <StateMark state={shown.state} /> : null}
      {own.length > 1 ? (
        <Select
          size="small"
          aria-label={t('attempt.choose')}
          value={shown?.attempt}
          onChange={(value: number) => onChange({ attempt: value, byte: undefined })}
          options={own.map((task) => ({ value: task.attempt, label: `${t('common.attempt')} ${task.attempt}` }))}
        />
      ) : null}
    </div>
  )
  return (
    <Drawer
      open
      onClose={onClose}
      size={width < 760 ? width : Math.min(920, width * 0.62)}
      title={title}
      extra={shown && width >= 760 ? <div className="row">{actions(shown)}</div> : undefined}
      mask={false}
      classNames={{ body: 'attempt-body' }}
    >
      {error ? <Trouble error={error} /> : null}
      {data && !shown ? <Empty title={t('error.notFound.detail')} /> : null}
      {shown ? (
        <>
          {shown.reason ? <p className={`reason tone-text-${shown.state}`}>{said(shown.reason_said, shown.reason)}</p> : null}
          {taskHasEnded(shown.state) ? <ErrorLine id={shown.id} /> : null}
          <Tabs
            className="fill-tabs"
            size="small"
            activeKey={tab ?? 'log'}
            onChange={(key) => onChange({ panel: key as AttemptTab, byte: undefined })}
            destroyOnHidden
            items={[
              { key: 'log', label: t('attempt.log'), children: <LogTab run={run} id={shown.id} started={shown.started_at !== null} byte={byte ?? null} onByte={(value) => onChange({ byte: value ?? undefined })} /> },
              { key: 'script', label: t('attempt.script'), children: <Script id={shown.id} /> },
              { key: 'why', label: t('attempt.why'), children: <Why run={run} id={shown.id} /> },
              { key: 'outputs', label: t('attempt.outputs'), children: <Outputs id={shown.id} /> },
              { key: 'details', label: t('attempt.details'), children: <Details id={shown.id} run={run} zone={zone} /> },
              ...(before ? [{ key: 'changes', label: t('compare.title'), children: <div className="pad"><p className="dim">{t('common.attempt')} {before.attempt} → {shown.attempt}</p><AttemptDiff one={before} other={shown} /></div> }] : []),
            ]}
          />
          {width < 760 ? <div className="row attempt-actions">{actions(shown)}</div> : null}
        </>
      ) : null}
    </Drawer>
  )
}

/** What the log says of a failure, unless the reason says it already. */
function ErrorLine({ id }: { id: number }) {
  const t = useT()
  const { data } = useQuery(taskOf(id))
  const line = data?.error_line
  if (!line || data.reason?.includes(line)) return null
  return <p className="mono wrap-any" aria-label={t('attempt.errorLine')}>{line}</p>
}

function LogTab({ run, id, started, byte, onByte }: { run: number; id: number; started: boolean; byte: number | null; onByte: (byte: number | null) => void }) {
  const t = useT()
  if (started) return <LogView key={id} id={id} byte={byte} onByte={onByte} />
  return (
    <div className="pad">
      <p>{t('log.notStarted')}</p>
      <Why run={run} id={id} />
    </div>
  )
}

function Why({ run, id }: { run: number; id: number }) {
  const t = useT()
  const { data, error, refetch } = useQuery(whyTask(run, id))
  if (error) return <Trouble error={error} retry={() => void refetch()} />
  return data ? <Findings findings={data.findings} empty={t('run.noFindings')} /> : <Loading rows={3} />
}

function Outputs({ id }: { id: number }) {
  const t = useT()
  const { data, error } = useQuery(taskOf(id))
  if (error) return <Trouble error={error} />
  if (!data) return <Loading rows={3} />
  const outputs = Object.entries(data.outputs)
  if (!outputs.length) return <Empty title={t('attempt.noOutputs')} />
  return <Facts items={outputs.map(([name, value]) => [<code key="n">{name}</code>, <code key="v" className="wrap-any">{value}</code>])} />
}

/** What the attempt was given: texts as they are, everything else as JSON. */
function Script({ id }: { id: number }) {
  const t = useT()
  const { data, error } = useQuery(rendered(id))
  if (error) return <Trouble error={error} />
  if (!data) return <Loading rows={6} />
  const params = Object.entries(data.params).filter(([, value]) => value !== null && value !== '')
  const parameters = Object.entries(data.parameters)
  return (
    <div className="stack pad">
      <p className="dim">{t('attempt.rendered')}</p>
      {data.problem ? <Alert type="warning" showIcon title={t('attempt.rendered.problem')} description={data.problem} /> : null}
      {params.map(([name, value]) => (
        <div key={name}>
          <h3><code>{name}</code></h3>
          <Code text={typeof value === 'string' ? value : JSON.stringify(value, null, 2)} />
        </div>
      ))}
      {parameters.length ? (
        <div>
          <h3>{t('attempt.values')}</h3>
          <Facts items={parameters.map(([name, value]) => [<code key="n">{name}</code>, <code key="v" className="wrap-any">{value}</code>])} />
        </div>
      ) : null}
    </div>
  )
}

/** What the work says of itself while it runs: stages of Spark, rows that are done. */
function Progress({ run, id, isRunning }: { run: number; id: number; isRunning: boolean }) {
  const t = useT()
  const { data } = useQuery({ ...progressOf(run, isRunning), enabled: isRunning, retry: false })
  const own = (data ?? []).filter((one) => one.task_instance_id === id)
  if (!isRunning || !own.length) return null
  return (
    <div className="stack">
      <h2 className="form-head">{t('attempt.progress')}</h2>
      {own.map((one) => (
        <div key={one.label}>
          <span className="row"><span className="cut">{one.label}</span><span className="grow" /><span className="dim num">{one.total === null ? `${one.done} ${one.unit}` : t('progress.of', { done: one.done, total: one.total, unit: one.unit })}</span></span>
          {one.total ? <Bar percent={Math.round((100 * one.done) / one.total)} size="small" aria-label={one.label} /> : null}
        </div>
      ))}
    </div>
  )
}

/** The job outside that the attempt has started; links lead to its own pages. */
function External({ detail }: { detail: Record<string, unknown> }) {
  const t = useT()
  const items = Object.entries(detail).filter(([, value]) => value !== null && value !== '')
  if (!items.length) return null
  return (
    <div>
      <h2 className="form-head">{t('attempt.external')}</h2>
      <Facts items={items.map(([name, value]) => [<code key="n">{name}</code>, <Value key="v" value={value} />])} />
    </div>
  )
}

function Value({ value }: { value: unknown }) {
  if (typeof value === 'string' && /^https?:\/\//.test(value)) return <a href={value} target="_blank" rel="noreferrer noopener" className="wrap-any">{value}</a>
  if (typeof value === 'object' && value !== null) return <Code text={JSON.stringify(value, null, 2)} />
  return <code className="wrap-any">{String(value)}</code>
}

/** A line of details of what is known; none of what is not. */
function known<T>(name: string, value: T | null, shown: (value: T) => ReactNode): [ReactNode, ReactNode][] {
  return value === null ? [] : [[name, shown(value)]]
}

function Details({ id, run, zone }: { id: number; run: number; zone: string }) {
  const t = useT()
  const { data, error } = useQuery(taskOf(id))
  if (error) return <Trouble error={error} />
  if (!data) return <Loading rows={6} />
  const end = taskHasEnded(data.state) ? data.finished_at : null
  return (
    <>
      <Facts
        items={[
          [t('common.type'), data.type],
          [t('common.attempt'), data.attempt],
          [t('common.worker'), data.worker ?? '–'],
          [t('cluster.workerGroup'), data.worker_group],
          [t('run.queued'), <Time key="q" at={data.queued_at} zone={zone} />],
          [t('common.started'), <Time key="s" at={data.started_at} zone={zone} />],
          [t('common.duration'), <Lasting key="d" from={data.started_at} to={end} />],
          [t('run.exit'), data.exit_code ?? '–'],
          ...known(t('attempt.cpu'), data.cpu_s, (value) => durationText(value * 1000)),
          ...known(t('attempt.memory'), data.max_rss_kb, (value) => bytesText(value * 1024)),
          ...known(t('attempt.errorLine'), data.error_line, (value) => <code key="e" className="wrap-any">{value}</code>),
          ...known(t('attempt.fingerprint'), data.fingerprint, (value) => <code key="f">{value}</code>),
        ]}
      />
      <Progress run={run} id={id} isRunning={data.state === 'RUNNING'} />
      <External detail={data.detail} />
    </>
  )
}
