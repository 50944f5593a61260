/** Signing in: by name and password, by a one-time code; and a new password. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Alert, App, Button, Checkbox, Form, Input } from 'antd'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { api, ApiProblem, take } from '@/api/client'
import { me as meOf } from '@/entities/queries'
import { restartLive } from '@/live/live'
import { useT } from '@/shared/i18n'
import { Code } from '@/shared/ui/parts'
import logo from '@/shared/logo.svg'

function Gate({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="gate">
      <div className="gate-card">
        <img src={logo} alt="" width={44} height={44} />
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}

/** Returns a function that forgets all that was of who was here before. */
function useEntered(): () => Promise<void> {
  const queries = useQueryClient()
  return async () => {
    queries.clear()
    restartLive()
    await queries.fetchQuery(meOf)
  }
}

export function LoginPage({ isOver, next, onIn }: { isOver: boolean; next: string; onIn: () => void }) {
  const t = useT()
  const entered = useEntered()
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const [form] = Form.useForm<{ name: string; password: string }>()
  const { data: ways } = useQuery({ queryKey: ['ways'], queryFn: () => take(api.GET('/api/v1/login')), staleTime: Infinity })
  const directory = ways?.items.find((way) => way.kind === 'ldap')
  const submit = async (body: { name: string; password: string }, way: 'here' | 'directory' = 'here'): Promise<void> => {
    setBusy(true)
    setError(null)
    try {
      await take(way === 'here' ? api.POST('/api/v1/login', { body }) : api.POST('/api/v1/login/ldap', { body }))
      await entered()
      onIn()
    } catch (thrown) {
      setError(thrown as ApiProblem)
      setBusy(false)
    }
  }
  return (
    <Gate title={t('login.title')}>
      {isOver && !error ? <Alert type="info" title={t('login.over')} /> : null}
      {error ? <Alert type="error" title={error.title || t('login.failed')} description={error.message || t('error.unreachable')} /> : null}
      <Form form={form} layout="vertical" requiredMark={false} onFinish={(values) => void submit(values)}>
        <Form.Item name="name" label={t('login.name')} rules={[{ required: true, message: t('start.required') }]}>
          <Input autoComplete="username" autoFocus />
        </Form.Item>
        <Form.Item name="password" label={t('login.password')} rules={[{ required: true, message: t('start.required') }]}>
          <Input.Password autoComplete="current-password" />
        </Form.Item>
        <Button type="primary" htmlType="submit" block loading={isBusy}>{t('login.submit')}</Button>
        {directory ? <Button className="other-way" block disabled={isBusy} onClick={() => void form.validateFields().then((values) => submit(values, 'directory'))}>{t('login.by', { name: directory.title })}</Button> : null}
      </Form>
      {ways?.items.filter((way) => way.kind === 'oidc').map((way) => <Button key={way.name} block href={`${way.path}?${new URLSearchParams({ return_to: next }).toString()}`}>{t('login.by', { name: way.title })}</Button>)}
      <div className="gate-foot">
        <p className="dim">{t('login.local')}</p>
        <Code text="shoal ui" />
      </div>
    </Gate>
  )
}

/** Where the link of `shoal ui` leads: exchanges the code for a session, once. */
export function CodePage({ onIn }: { onIn: () => void }) {
  const t = useT()
  const entered = useEntered()
  const [error, setError] = useState<ApiProblem | null>(null)
  const began = useRef(false)
  useEffect(() => {
    if (began.current) return
    began.current = true
    const code = location.hash.slice(1)
    history.replaceState(history.state, '', location.pathname) // it is of no use any more
    const enter = async (): Promise<void> => {
      try {
        if (!code) throw new ApiProblem(401, { detail: t('code.missing') })
        await take(api.POST('/api/v1/login/one-time', { body: { code } }))
        await entered()
        onIn()
      } catch (thrown) {
        setError(thrown as ApiProblem)
      }
    }
    void enter()
    // Once, whatever changes.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  return (
    <Gate title={t('login.title')}>
      {error ? <Alert type="error" title={t('code.failed')} description={error.message || t('error.unreachable')} /> : <p>{t('code.working')}</p>}
      {error ? <Code text="shoal ui" /> : null}
    </Gate>
  )
}

interface PasswordForm {
  current: string
  next: string
  again: string
  keep?: boolean
}

export function PasswordPage({ onDone }: { onDone: () => void }) {
  const t = useT()
  const queries = useQueryClient()
  const { message } = App.useApp()
  const { data: who } = useQuery(meOf)
  const [form] = Form.useForm<PasswordForm>()
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const isForced = who?.must_change_password ?? false
  const submit = async ({ current, next, keep }: PasswordForm): Promise<void> => {
    setBusy(true)
    setError(null)
    try {
      await take(api.PUT('/api/v1/me/password', { body: { current, new: next, keep_tokens: keep ?? false } }))
      await queries.invalidateQueries()
      void message.success(t('password.done'))
      onDone()
    } catch (thrown) {
      const problem = thrown as ApiProblem
      form.setFields(problem.fields.map((field) => ({ name: field.field === 'new' ? 'next' : ('current' as const), errors: [field.message] })))
      if (!problem.fields.length) setError(problem)
      setBusy(false)
    }
  }
  const required = { required: true, message: t('start.required') }
  return (
    <Gate title={t('password.title')}>
      {isForced ? <Alert type="info" title={t('password.forced')} /> : null}
      {error ? <Alert type="error" title={error.title} description={error.message} /> : null}
      <Form form={form} layout="vertical" requiredMark={false} onFinish={(values) => void submit(values)}>
        <Form.Item name="current" label={t('password.current')} rules={[required]}>
          <Input.Password autoComplete="current-password" autoFocus />
        </Form.Item>
        <Form.Item name="next" label={t('password.new')} extra={t('password.rule')} rules={[required]}>
          <Input.Password autoComplete="new-password" />
        </Form.Item>
        <Form.Item name="again" label={t('password.again')} dependencies={['next']} rules={[required, { validator: (_, value) => (value === form.getFieldValue('next') ? Promise.resolve() : Promise.reject(new Error(t('password.differ')))) }]}>
          <Input.Password autoComplete="new-password" />
        </Form.Item>
        <Form.Item name="keep" valuePropName="checked">
          <Checkbox>{t('password.keep')}</Checkbox>
        </Form.Item>
        <Button type="primary" htmlType="submit" block loading={isBusy}>{t('password.submit')}</Button>
        {isForced ? null : <Button type="text" block onClick={onDone}>{t('common.cancel')}</Button>}
      </Form>
    </Gate>
  )
}
