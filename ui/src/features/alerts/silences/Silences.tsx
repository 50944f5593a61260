/** What nobody is told of for a while. */
import type { AlertSilence } from '@/api/types'
import { ListTable, useRows } from '@/entities/lists'
import { Act, useRefusal } from '@/entities/marks'
import { useAsk, useDo } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import type { Column } from '@/shared/ui/DataTable'
import { Empty } from '@/shared/ui/parts'
import { endSilence, keyOf, silences } from '../queries'

export function Silences({ project, onMake }: { project: string; onMake: () => void }) {
  const t = useT()
  const ask = useAsk()
  const act = useDo()
  const refusal = useRefusal('run.operate', project)
  const list = useRows<AlertSilence>(silences(project))
  const end = (row: AlertSilence): void =>
    ask({ title: t('alerts.silence.end.ask'), text: t('alerts.silence.end.text'), ok: t('alerts.silence.end'), danger: false, act: () => act(() => endSilence(project, row.id), t('alerts.silence.ended'), [keyOf(project)]) })
  const columns: Column<AlertSilence>[] = [
    { key: 'what', title: t('alerts.silence.covers'), width: 'minmax(130px, 1.2fr)', render: (row) => <Covers silence={row} /> },
    { key: 'since', title: t('alerts.silence.since'), width: 'minmax(214px, 1fr)', hide: 'medium', render: (row) => <Time at={row.since} /> },
    { key: 'until', title: t('alerts.silence.until'), width: 'minmax(214px, 1fr)', hide: 'narrow', render: (row) => <Time at={row.until} /> },
    { key: 'reason', title: t('common.reason'), width: 'minmax(90px, 1.2fr)', hide: 'narrow', render: (row) => <span className="cut dim" title={row.reason}>{row.reason}</span> },
    { key: 'by', title: t('common.principal'), width: 'minmax(80px, 0.7fr)', hide: 'narrow', render: (row) => <span className="cut">{row.by}</span> },
    { key: 'ways', title: <span className="hidden">{t('alerts.silence.end')}</span>, width: '72px', render: (row) => <span className="row ways"><Act size="small" type="text" refusal={refusal} onClick={() => end(row)}>{t('alerts.silence.end')}<span className="hidden"> {row.id}</span></Act></span> },
  ]
  const adding = <Act refusal={refusal} type="primary" onClick={onMake}>{t('alerts.silences.add')}</Act>
  return (
    <div className="stack">
      <div className="section-head"><p className="lead">{t('alerts.silences.text')}</p>{list.rows.length ? adding : null}</div>
      <ListTable list={list} label={t('alerts.silences')} columns={columns} rowKey={(row) => row.id} empty={<Empty title={t('alerts.silences.none')} action={adding} />} />
    </div>
  )
}

function Covers({ silence }: { silence: AlertSilence }) {
  const t = useT()
  const parts = ([['common.workflow', silence.workflow], ['alerts.task', silence.task], ['alerts.rule', silence.rule]] as const).filter(([, pattern]) => pattern)
  if (!parts.length) return <span className="strong">{t('alerts.silence.everything')}</span>
  return <span className="cut">{parts.map(([key, pattern], index) => <span key={key}>{index ? ', ' : ''}<span className="dim">{t(key)}</span> <code>{pattern}</code></span>)}</span>
}
