/** Sends a test by a channel, and shows what comes of it. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Form, Modal, Select, Spin } from 'antd'
import { useState } from 'react'
import { api, take, type ApiProblem } from '@/api/client'
import type { AlertDelivery } from '@/api/types'
import { Problem } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Time } from '@/shared/time/Time'
import { delivery as deliveryOf } from '../queries'

const OVER = new Set(['SENT', 'FAILED', 'WITHDRAWN', 'SILENCED'])

interface Props {
  project: string
  name: string
  needsAddresses: boolean
  refusal: string | null
  onClose: () => void
}

export function TestChannel({ project, name, needsAddresses, refusal, onClose }: Props) {
  const t = useT()
  const [to, setTo] = useState<string[]>([])
  const [sent, setSent] = useState<AlertDelivery | null>(null)
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const go = async (): Promise<void> => {
    setBusy(true)
    setSent(null)
    setError(null)
    try {
      setSent(await take(api.POST('/api/v1/projects/{project}/alert-channels/{name}/tests', { params: { path: { project, name } }, body: { to } })))
    } catch (thrown) {
      setError(thrown as ApiProblem)
    } finally {
      setBusy(false)
    }
  }
  const isWaiting = needsAddresses && !to.length
  return (
    <Modal open title={t('alerts.test.title', { name })} okText={t(sent ? 'alerts.test.again' : 'alerts.test.go')} cancelText={t('common.close')} okButtonProps={{ disabled: refusal !== null || isWaiting }} confirmLoading={isBusy} onOk={() => void go()} onCancel={onClose}>
      <div className="stack">
        <p className="dim">{t('alerts.test.text')}</p>
        {needsAddresses ? (
          <Form layout="vertical">
            <Form.Item label={t('alerts.addresses')} htmlFor="test-to"><Select id="test-to" mode="tags" className="mono" open={false} suffixIcon={null} autoFocus tokenSeparators={[',', ' ', ';']} placeholder="ada@example.org" value={to} onChange={setTo} /></Form.Item>
          </Form>
        ) : null}
        {error ? <Problem error={error} /> : null}
        {sent ? <Outcome key={sent.id} project={project} sent={sent} /> : null}
      </div>
    </Modal>
  )
}

/** What has come of a test so far. */
function Outcome({ project, sent }: { project: string; sent: AlertDelivery }) {
  const t = useT()
  const { data } = useQuery(deliveryOf(project, sent.id))
  const now = data ?? sent
  const answer = now.answer ? <p className="keep-lines mono">{now.answer}</p> : null
  return (
    <div role="status" data-test={now.state}>
      {now.state === 'SENT' ? (
        <Alert type="success" showIcon title={t('alerts.test.ok')} description={answer} />
      ) : OVER.has(now.state) ? (
        <Alert type="error" showIcon title={t('alerts.test.bad')} description={answer} />
      ) : now.tries > 0 && now.answer ? (
        <Alert type="warning" showIcon title={t('alerts.test.retrying')} description={<>{answer}<p className="dim small">{t('alerts.due')} <Time at={now.due_at} /></p></>} />
      ) : (
        <p className="row"><Spin size="small" /> {t('alerts.test.waiting')}</p>
      )}
    </div>
  )
}
