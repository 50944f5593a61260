/** Begins a workflow: empty, or with an example; what comes of it is a draft until it is published. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Form, Input, Modal, Radio, Select } from 'antd'
import { useState } from 'react'
import { api, ApiProblem, take } from '@/api/client'
import { NAME } from '@/definition/tasks'
import { may, Trouble } from '@/entities/marks'
import { me as meOf, projects as projectsOf } from '@/entities/queries'
import { useT } from '@/shared/i18n'
import '@/shared/i18n/editor'
import { exampleText } from './example'

interface Props {
  project: string | undefined
  begin: 'empty' | 'example'
  onClose: () => void
  onOpen: (project: string, name: string) => void
}

export function NewWorkflow({ project: given, begin: wanted, onClose, onOpen }: Props) {
  const t = useT()
  const { data: who } = useQuery(meOf)
  const { data: projects } = useQuery(projectsOf)
  const own = (projects?.items ?? []).map((one) => one.name).filter((name) => !who || may(who, 'project.edit', name))
  const [chosen, setChosen] = useState(given)
  const project = chosen ?? (own.includes('default') ? 'default' : own[0])
  const [begin, setBegin] = useState(wanted)
  const [name, setName] = useState(wanted === 'example' ? 'hello' : '')
  const [isTried, setTried] = useState(false)
  const [isTaken, setTaken] = useState(false)
  const [isSending, setSending] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  const mistake = isTaken ? t('new.taken') : isTried && !NAME.test(name) ? t('task.badName') : null
  const create = async (): Promise<void> => {
    setTried(true)
    if (!NAME.test(name) || !project) return
    setSending(true)
    setError(null)
    const path = { project, name }
    try {
      if (await exists(path)) {
        setTaken(true)
        return
      }
      if (begin === 'example') {
        await take(api.PUT('/api/v1/projects/{project}/workflows/{name}/draft', { params: { path, header: { 'if-none-match': '*' } }, body: { text: exampleText(name), base_version: 0 } }))
      }
      onOpen(project, name)
    } catch (caught) {
      // A draft of this name is there: it is what one wants to see.
      if (caught instanceof ApiProblem && caught.status === 412) onOpen(project, name)
      else setError(caught instanceof Error ? caught : new Error(String(caught)))
    } finally {
      setSending(false)
    }
  }
  return (
    <Modal open width={460} title={t('new.title')} okText={t('new.create')} cancelText={t('common.cancel')} onCancel={onClose} onOk={() => void create()} okButtonProps={{ loading: isSending, disabled: own.length === 0 }}>
      <Form layout="vertical" requiredMark={false} onFinish={() => void create()}>
        {projects && !own.length ? <Alert type="warning" showIcon title={t('new.noProject')} /> : null}
        {error ? <Trouble error={error} /> : null}
        <Form.Item label={t('new.name')} htmlFor="new-name" {...(mistake ? { validateStatus: 'error' as const, help: mistake } : {})}>
          <Input id="new-name" autoFocus value={name} onChange={(event) => (setName(event.target.value), setTaken(false))} />
        </Form.Item>
        <Form.Item label={t('new.project')} htmlFor="new-project">
          <Select<string> id="new-project" showSearch value={project ?? null} onChange={(value: string) => (setChosen(value), setTaken(false))} options={own.map((value) => ({ value, label: value }))} />
        </Form.Item>
        <Form.Item label={t('new.begin')}>
          <Radio.Group value={begin} onChange={(event) => setBegin(event.target.value as 'empty' | 'example')} options={[{ value: 'empty', label: t('new.empty') }, { value: 'example', label: t('new.example') }]} vertical />
        </Form.Item>
        <button type="submit" hidden />
      </Form>
    </Modal>
  )
}

async function exists(path: { project: string; name: string }): Promise<boolean> {
  try {
    await take(api.GET('/api/v1/projects/{project}/workflows/{name}', { params: { path } }))
    return true
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return false
    throw error
  }
}
