/** Changing things: forms beside the page, questions before something is gone, and what came of it. */
import { useQueryClient } from '@tanstack/react-query'
import { Alert, App, Button, Drawer, Form, type FormInstance } from 'antd'
import { useCallback, useEffect, useRef, useState, type ReactNode } from 'react'
import { ApiProblem, type Tagged } from '@/api/client'
import { useT } from '@/shared/i18n'
import { useWidth } from '@/shared/ui/DataTable'
import { Diff } from '@/shared/ui/Diff'
import { Loading } from '@/shared/ui/parts'
import { Act, Trouble } from './marks'

type Keys = readonly (readonly unknown[])[]

/** Returns a function that does something, tells how it went and renews what is shown. True: done. */
export function useDo(): (action: () => Promise<unknown>, done: string, renew: Keys) => Promise<boolean> {
  const t = useT()
  const queries = useQueryClient()
  const { message, notification } = App.useApp()
  return useCallback(
    async (action, done, renew) => {
      try {
        await action()
        void message.success(done)
        return true
      } catch (error) {
        const problem = error as ApiProblem
        const text = [problem.message, ...(problem.fields ?? []).map((field) => field.message)].filter(Boolean).join(' ')
        notification.error({ title: problem.status === 0 ? t('error.unreachable') : problem.title || t('error.unexpected'), description: text })
        return false
      } finally {
        for (const queryKey of renew) void queries.invalidateQueries({ queryKey })
      }
    },
    [t, queries, message, notification],
  )
}

/** Returns a function that asks before something is done that cannot be undone. */
export function useAsk(): (question: { title: string; text?: ReactNode; ok: string; danger?: boolean; act: () => Promise<unknown> }) => void {
  const t = useT()
  const { modal } = App.useApp()
  return ({ title, text, ok, danger = true, act }) => {
    void modal.confirm({ title, content: text, okText: ok, cancelText: t('common.cancel'), okButtonProps: { danger }, icon: null, onOk: () => act() })
  }
}

interface FormProps<V extends object> {
  title: ReactNode
  /** What the fields show at first, of something new. */
  initial?: Partial<V>
  /** Fetches what is edited, and its mark: a change that somebody makes meanwhile is noticed. */
  load?: () => Promise<Tagged<Partial<V>>>
  /** Reads what the API says that is stored now, as `load` reads it: to show what somebody else has changed. */
  read?: (stored: unknown) => Partial<V>
  submit: string
  refusal?: string | null
  /** Stores it; `etag`: of what was fetched. What it throws is shown: at its field if it names one. */
  onSave: (values: V, etag: string | undefined) => Promise<unknown>
  onClose: () => void
  children: ReactNode | ((form: FormInstance<V>) => ReactNode)
  aside?: ReactNode
  wide?: boolean
}

/** A form in a drawer; Esc closes it, and a change that somebody else has made meanwhile is not lost. */
export function FormDrawer<V extends object>({ title, load, wide = false, onClose, ...form }: FormProps<V>) {
  const width = useWidth()
  const [now, setNow] = useState<Tagged<Partial<V>> | null>(load ? null : { value: form.initial ?? {}, etag: '' })
  const [failed, setFailed] = useState<Error | null>(null)
  useEffect(() => {
    let isGone = false
    load?.().then(
      (found) => {
        if (!isGone) setNow(found)
      },
      (error: Error) => {
        if (!isGone) setFailed(error)
      },
    )
    return () => {
      isGone = true
    }
    // Once: what it was when it was opened is what a change is of.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  return (
    <Drawer open onClose={onClose} size={Math.min(width, wide ? 760 : 520)} title={title} destroyOnHidden>
      {failed ? <Trouble error={failed} /> : null}
      {now ? <Fields {...form} initial={now.value} etag={now.etag} onClose={onClose} /> : failed ? null : <Loading rows={5} />}
    </Drawer>
  )
}

function Fields<V extends object>({ initial, etag, read, submit, refusal = null, onSave, onClose, children, aside }: Omit<FormProps<V>, 'title' | 'load' | 'wide'> & { etag: string }) {
  const t = useT()
  const [form] = Form.useForm<V>()
  const [error, setError] = useState<ApiProblem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const trouble = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // The button is at the end of a long form. (Newer browsers return something, which is not a clean-up.)
    if (error) trouble.current?.scrollIntoView({ block: 'nearest' })
  }, [error])
  const save = async (values: V, of = etag): Promise<void> => {
    setBusy(true)
    setError(null)
    try {
      await onSave(values, of || undefined)
      onClose()
    } catch (thrown) {
      const problem = thrown instanceof ApiProblem ? thrown : new ApiProblem(-1, { detail: String(thrown) })
      const known = problem.fields.map((field) => ({ path: field.field.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part)), text: field.message })).filter(({ path }) => form.getFieldInstance(path as never) !== undefined)
      form.setFields(known.map(({ path, text }) => ({ name: path as never, errors: [text] })))
      if (known.length < Math.max(1, problem.fields.length)) setError(problem)
      setBusy(false)
    }
  }
  return (
    <Form<V> form={form} layout="vertical" requiredMark={false} initialValues={initial ?? {}} onFinish={(values) => void save(values)} scrollToFirstError>
      <div ref={trouble}>{error ? error.status === 412 ? <Stale before={initial ?? {}} now={read && error.current ? read(error.current) : null} onMine={() => void form.validateFields().then((values) => save(values, error.tag ?? ''))} /> : <Problem error={error} /> : null}</div>
      {typeof children === 'function' ? children(form) : children}
      <div className="form-foot">
        {aside}
        <span className="grow" />
        <Button onClick={onClose}>{t('common.cancel')}</Button>
        <Act refusal={refusal} type="primary" htmlType="submit" loading={isBusy}>{submit}</Act>
      </div>
    </Form>
  )
}

/** Somebody was quicker. Where it is known what has changed, it is shown, and may be replaced knowingly. */
function Stale<V extends object>({ before, now, onMine }: { before: Partial<V>; now: Partial<V> | null; onMine: () => void }) {
  const t = useT()
  if (!now) return <Alert type="warning" showIcon title={t('save.stale')} description={t('save.stale.detail')} />
  const text = (value: Partial<V>): string => JSON.stringify(value, null, 2)
  return (
    <Alert
      className="form-alert"
      type="warning"
      showIcon
      title={t('save.stale')}
      description={
        <div className="stack" data-stale>
          <p>{t('save.stale.shown')}</p>
          <Diff before={text(before)} after={text(now)} same={t('save.stale.same')} />
          <div><Button size="small" onClick={onMine}>{t('save.stale.mine')}</Button></div>
        </div>
      }
    />
  )
}

/** An error with all that it says of fields. */
export function Problem({ error }: { error: ApiProblem }) {
  if (!error.fields.length) return <Trouble error={error} />
  return (
    <Alert
      type="error"
      showIcon
      title={error.title}
      description={<ul className="plain-list">{error.fields.map((field, index) => <li key={index}><code>{field.field}</code> {field.message}</li>)}</ul>}
    />
  )
}
