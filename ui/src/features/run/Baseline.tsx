/** A run against what is usual for it: the whole of it, and task by task, those first that made it slower. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Baseline as Compared, ComparedTask, InstanceDetail } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { baseline as baselineOf } from '@/entities/queries'
import { hasEnded } from '@/entities/states'
import { useT, type TextKey } from '@/shared/i18n'
import { useSettings } from '@/shared/settings'
import { differenceText, secondsText } from '@/shared/time/seconds'
import { DataTable, useWidth, type Column } from '@/shared/ui/DataTable'
import { Code, Empty, Loading } from '@/shared/ui/parts'
import './baseline.css'

const COMMAND = 'shoal insight setup'
const MOST_NAMED = 3 // tasks in the sentence
const LOOKS = { slower: ['▲', 'slower'], usual: ['=', 'dim'], faster: ['▼', 'faster'], unknown: ['·', 'dim'] } as const

export function Baseline({ run, chosen, onTask }: { run: InstanceDetail; chosen: string | undefined; onTask: (task: string) => void }) {
  const t = useT()
  const { data, error, refetch } = useQuery(baselineOf(run.id))
  if (error && !data) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <Loading rows={8} />
  if (data.of === null) return <Empty title={t('run.baseline.none')}><p>{t('run.baseline.none.text')}</p><Code text={COMMAND} /></Empty>
  return (
    <div className="stack">
      <Sentence data={data} run={run} />
      <Legend />
      <Tasks tasks={data.tasks} chosen={chosen} onTask={onTask} />
    </div>
  )
}

function Sentence({ data, run }: { data: Compared; run: InstanceDetail }) {
  const t = useT()
  const { language } = useSettings()
  const { verdict, took_s: took, difference_s: difference, usual } = data.run
  const values = { took: secondsText(took), usual: secondsText(usual?.p50_s), by: secondsText(difference) }
  const made = data.tasks.filter((one) => (one.effect_s ?? 0) >= 1).slice(0, MOST_NAMED).map((one) => `${one.task} ${differenceText(one.effect_s)}`)
  const key: TextKey = verdict === 'unknown' || !usual ? 'run.baseline.unknown' : verdict === 'slower' ? 'run.baseline.slower' : !hasEnded(run.state) ? 'run.baseline.open' : verdict === 'faster' ? 'run.baseline.faster' : 'run.baseline.same'
  const hour = usual && usual.hour >= 0 ? `${String(usual.hour).padStart(2, '0')}:00` : null
  const day = usual && usual.weekday >= 0 ? weekdayText(usual.weekday, language) : null
  const when = hour && day ? t('run.baseline.both', { day, hour }) : hour ? t('run.baseline.hour', { hour }) : day ? t('run.baseline.weekday', { day }) : t('run.baseline.any')
  return (
    <div className="baseline-head" data-verdict={verdict}>
      <p className="baseline-sentence"><Mark verdict={verdict} bare /> {t(key, values)} {verdict === 'slower' && made.length ? t('run.baseline.made', { tasks: made.join(', ') }) : null}</p>
      <p className="dim small">
        {usual ? <span>{t('run.baseline.of', { count: usual.n, when, day: data.of ?? '' })} </span> : null}
        <Link to="/insight" search={{ project: run.project, workflow: `${run.project}/${run.workflow}`, tab: 'slower' as const }}>{t('run.baseline.insight')}</Link>
      </p>
    </div>
  )
}

function weekdayText(weekday: number, language: string): string {
  return new Intl.DateTimeFormat(language === 'zh' ? 'zh-CN' : 'en-GB', { weekday: 'long', timeZone: 'UTC' }).format(new Date(Date.UTC(2026, 0, 5 + weekday)))
}

function Mark({ verdict, bare = false }: { verdict: ComparedTask['verdict']; bare?: boolean }) {
  const t = useT()
  const [glyph, look] = LOOKS[verdict]
  const text = t(`run.verdict.${verdict}`)
  return <span className={`verdict-mark ${look}`} title={bare ? text : undefined}><span aria-hidden>{glyph}</span>{bare ? <span className="hidden">{text}</span> : <> {text}</>}</span>
}

function Legend() {
  const t = useT()
  return (
    <ul className="baseline-legend small">
      <li><span className="baseline-key took" aria-hidden />{t('run.baseline.legend.took')}</li>
      <li><span className="baseline-key usual" aria-hidden />{t('run.baseline.legend.usual')}</li>
      <li><span className="baseline-key critical" aria-hidden />{t('run.baseline.legend.critical')}</li>
    </ul>
  )
}

function Tasks({ tasks, chosen, onTask }: { tasks: readonly ComparedTask[]; chosen: string | undefined; onTask: (task: string) => void }) {
  const t = useT()
  const isNarrow = useWidth() < 640
  const longest = Math.max(0.1, ...tasks.flatMap((one) => [one.took_s ?? 0, one.usual?.p95_s ?? 0]))
  const columns: Column<ComparedTask>[] = [
    { key: 'task', title: t('common.name'), width: 'minmax(100px, 1fr)', render: (one) => <button type="button" className="link mono strong cut" onClick={() => onTask(one.task)}>{one.is_critical ? <span className="baseline-key critical" title={t('run.baseline.legend.critical')} /> : null}{one.task}</button> },
    { key: 'bars', title: t('run.baseline.bars'), width: isNarrow ? 'minmax(80px, 1fr)' : 'minmax(140px, 1.8fr)', render: (one) => <Bars one={one} longest={longest} /> },
    { key: 'took', title: t('run.baseline.took'), width: isNarrow ? '68px' : '92px', render: (one) => <span className="num">{secondsText(one.took_s)}</span> },
    { key: 'usual', title: t('run.baseline.usual'), width: '92px', hide: 'narrow', render: (one) => <span className="num dim">{secondsText(one.usual?.p50_s)}</span> },
    { key: 'difference', title: t('run.baseline.difference'), width: '96px', hide: 'narrow', render: (one) => <span className={`num ${LOOKS[one.verdict][1]}`}>{differenceText(one.difference_s)}</span> },
    { key: 'waited', title: t('run.baseline.waited'), width: '92px', hide: 'medium', render: (one) => <span className="num" title={differenceText(one.wait_difference_s)}>{secondsText(one.waited_s)}</span> },
    { key: 'effect', title: t('run.baseline.effect'), width: '132px', hide: 'medium', render: (one) => <span className={(one.effect_s ?? 0) >= 1 ? 'num strong' : 'num dim'}>{one.effect_s === null ? '–' : differenceText(one.effect_s)}</span> },
    { key: 'verdict', title: isNarrow ? <span className="hidden">{t('run.baseline.verdict')}</span> : t('run.baseline.verdict'), width: isNarrow ? '14px' : '96px', render: (one) => <Mark verdict={one.verdict} bare={isNarrow} /> },
  ]
  return <DataTable label={t('run.baseline')} rows={tasks} columns={columns} rowKey={(one) => one.task} rowHeight={40} onOpen={(one) => onTask(one.task)} isChosen={(one) => one.task === chosen} />
}

/** What it took as a bar; behind it, from the median to the 95th percentile, what is usual. */
function Bars({ one, longest }: { one: ComparedTask; longest: number }) {
  const percent = (seconds: number): string => `${((100 * seconds) / longest).toFixed(2)}%`
  const { took_s: took, usual } = one
  return (
    <span className="baseline-bars" title={`${secondsText(took)} ↔ ${secondsText(usual?.p50_s)} – ${secondsText(usual?.p95_s)}`}>
      {usual ? <span className="baseline-usual" style={{ left: percent(usual.p50_s), width: `max(3px, ${percent(usual.p95_s - usual.p50_s)})` }} /> : null}
      {took === null ? null : <span className={`baseline-took ${one.verdict}`} style={{ width: `max(2px, ${percent(took)})` }} />}
      {usual ? <span className="baseline-median" style={{ left: percent(usual.p50_s) }} /> : null}
    </span>
  )
}
