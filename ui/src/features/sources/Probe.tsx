/** Has a worker try a data source, and shows what it says. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Form, Input, Modal, Select } from 'antd'
import { useState } from 'react'
import { api, take, type ApiProblem } from '@/api/client'
import type { Probe as Answer } from '@/api/types'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { durationText } from '@/shared/time/format'

const LIMIT = 200

export function Probe({ project, name, refusal, onClose }: { project: string; name: string; refusal: string | null; onClose: () => void }) {
  const t = useT()
  const [group, setGroup] = useState('default')
  const [text, setText] = useState('')
  const [answer, setAnswer] = useState<Answer | null>(null)
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const { data: groups } = useQuery({ queryKey: ['worker-groups'], queryFn: () => take(api.GET('/api/v1/worker-groups', { params: { query: { limit: LIMIT } } })), retry: false })
  const names = [...new Set(['default', ...(groups?.items ?? []).map((one) => one.group)])]
  const go = async (): Promise<void> => {
    setBusy(true)
    setAnswer(null)
    setError(null)
    const parameters = Object.fromEntries(text.split('\n').filter((line) => line.includes('=')).map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1)]))
    try {
      setAnswer(await take(api.POST('/api/v1/projects/{project}/data-sources/{name}/test', { params: { path: { project, name } }, body: { worker_group: group, parameters } })))
    } catch (thrown) {
      setError(thrown as ApiProblem)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal open title={t('sources.test.title', { name })} okText={t('sources.test.go')} cancelText={t('common.close')} okButtonProps={{ disabled: refusal !== null }} confirmLoading={isBusy} onOk={() => void go()} onCancel={onClose}>
      <div className="stack">
        <p className="dim">{t('sources.test.text')}</p>
        <Form layout="vertical">
          <Form.Item label={t('sources.test.group')} htmlFor="probe-group"><Select id="probe-group" value={group} onChange={setGroup} options={names.map((value) => ({ value, label: value }))} /></Form.Item>
          <Form.Item label={t('sources.test.parameters')} htmlFor="probe-values"><Input.TextArea id="probe-values" className="mono" autoSize={{ minRows: 1, maxRows: 6 }} value={text} onChange={(event) => setText(event.target.value)} /></Form.Item>
        </Form>
        {error ? <Trouble error={error} /> : null}
        {answer ? (
          <div data-probe={answer.ok ? 'ok' : 'bad'} role="status">
            <Alert type={answer.ok ? 'success' : 'error'} showIcon title={t(answer.ok ? 'sources.test.ok' : 'sources.test.bad')} description={<><p className="keep-lines">{answer.text}</p><p className="dim small">{t('sources.test.took', { worker: answer.worker, time: durationText(answer.took_s * 1000) })}</p></>} />
          </div>
        ) : null}
      </div>
    </Modal>
  )
}
