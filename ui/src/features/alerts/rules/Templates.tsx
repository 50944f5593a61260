/** What messages say, if not the usual; and what that would be. */
import { Alert, Button, Form, Input } from 'antd'
import { useState } from 'react'
import { api, take, type ApiProblem } from '@/api/client'
import { Problem } from '@/entities/saving'
import { useT } from '@/shared/i18n'
import { Code } from '@/shared/ui/parts'
import { bodyOf, type Values } from './rule'

interface Preview {
  subject: string
  text: string
}

export function Templates({ project }: { project: string }) {
  const t = useT()
  const form = Form.useFormInstance<Values>()
  const [preview, setPreview] = useState<Preview | null>(null)
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const look = async (): Promise<void> => {
    setBusy(true)
    try {
      const rule = bodyOf(form.getFieldsValue(true) as Values)
      setPreview(await take(api.POST('/api/v1/projects/{project}/alert-previews', { params: { path: { project } }, body: { rule, alert_id: null } })))
      setError(null)
    } catch (thrown) {
      setPreview(null)
      setError(thrown as ApiProblem)
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="entries">
      <h2 className="form-head">{t('alerts.templates')}</h2>
      <p className="dim form-note">{t('alerts.templates.text')}</p>
      <Form.Item name={['templates', 'subject']} label={t('alerts.templates.subject')} className="tight"><Input className="mono" placeholder={t('alerts.templates.usual')} autoComplete="off" /></Form.Item>
      <Form.Item name={['templates', 'text']} label={t('alerts.templates.body')} className="tight"><Input.TextArea className="mono" autoSize={{ minRows: 2, maxRows: 12 }} placeholder={t('alerts.templates.usual')} /></Form.Item>
      <div><Button loading={isBusy} onClick={() => void look()}>{t('alerts.templates.preview')}</Button></div>
      {error ? <Problem error={error} /> : null}
      {preview ? <Alert type="info" title={preview.subject} description={<Code text={preview.text} />} data-preview /> : null}
    </div>
  )
}
