/** Uploads files into a folder, one after the other, with progress and a result for each. */
import { InboxOutlined } from '@ant-design/icons'
import { Button, Form, Input, Modal, Progress } from 'antd'
import { useEffect, useRef, useState } from 'react'
import { ApiProblem } from '@/api/client'
import { Act } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { bytesText } from '@/shared/time/format'
import { store } from './content'
import { isPath } from './folders'

interface Item {
  file: File
  path: string // within the folder
  share: number
  outcome: string | null // null: not yet
  isBad: boolean
}

export function Upload({ project, folder, refusal, onStored, onClose }: { project: string; folder: string; refusal: string | null; onStored: () => void; onClose: () => void }) {
  const t = useT()
  const [into, setInto] = useState(folder)
  const [items, setItems] = useState<Item[]>([])
  const [isBusy, setBusy] = useState(false)
  const [isOver, setOver] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const abort = useRef(new AbortController())
  useEffect(() => {
    const current = new AbortController()
    abort.current = current
    return () => current.abort() // leaving ends it: nothing of a file that is cut off is stored
  }, [])
  const add = (files: FileList | null): void =>
    setItems((old) => [...old, ...[...(files ?? [])].map((file) => ({ file, path: file.webkitRelativePath || file.name, share: 0, outcome: null, isBad: false }))])
  const set = (index: number, to: Partial<Item>): void => setItems((old) => old.map((item, at) => (at === index ? { ...item, ...to } : item)))
  const start = into.replace(/^\/+|\/+$/g, '')
  const go = async (): Promise<void> => {
    setBusy(true)
    for (const [index, item] of items.entries()) {
      if (item.outcome !== null && !item.isBad) continue
      const path = start ? `${start}/${item.path}` : item.path
      if (!isPath(path)) {
        set(index, { outcome: `${path} ${t('resources.path.wrong')}`, isBad: true })
        continue
      }
      try {
        const stored = await store(project, path, item.file, null, (share) => set(index, { share }), abort.current.signal)
        set(index, { share: 1, outcome: `${stored.path}@${stored.version}`, isBad: false })
      } catch (error) {
        if (error instanceof DOMException) return
        set(index, { outcome: (error as ApiProblem).message || t('error.unreachable'), isBad: true })
      }
    }
    setBusy(false)
    onStored()
  }
  const isDone = items.length > 0 && items.every((item) => item.outcome !== null && !item.isBad)
  return (
    <Modal
      open
      title={t('resources.upload')}
      onCancel={onClose}
      footer={
        isDone ? (
          <Button type="primary" onClick={onClose}>{t('common.close')}</Button>
        ) : (
          <>
            <Button onClick={onClose}>{t('common.cancel')}</Button>
            <Act refusal={refusal} type="primary" loading={isBusy} disabled={!items.length} onClick={() => void go()}>{t('resources.upload')}</Act>
          </>
        )
      }
    >
      <Form layout="vertical">
        <Form.Item label={t('resources.into')} htmlFor="upload-into"><Input id="upload-into" className="mono" placeholder={t('resources.root')} value={into} disabled={isBusy} onChange={(event) => setInto(event.target.value)} /></Form.Item>
      </Form>
      <button
        type="button"
        className={isOver ? 'drop over' : 'drop'}
        onClick={() => input.current?.click()}
        onDragOver={(event) => { event.preventDefault(); setOver(true) }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => { event.preventDefault(); setOver(false); add(event.dataTransfer.files) }}
      >
        <InboxOutlined aria-hidden /> {t('resources.drop')}
      </button>
      <input ref={input} type="file" multiple hidden aria-hidden onChange={(event) => { add(event.target.files); event.target.value = '' }} data-upload />
      <ul className="uploads" aria-live="polite">
        {items.map((item, index) => (
          <li key={index} data-outcome={item.outcome === null ? 'open' : item.isBad ? 'bad' : 'ok'}>
            <span className="row"><span className="mono cut">{item.path}</span><span className="grow" /><span className="dim num">{bytesText(item.file.size)}</span></span>
            {item.outcome === null ? <Progress size="small" percent={Math.round(100 * item.share)} aria-label={item.path} /> : <span className={item.isBad ? 'bad-text' : 'dim mono'}>{item.isBad ? '✕' : '✓'} {item.outcome}</span>}
          </li>
        ))}
      </ul>
      {isDone ? <p role="status">{t('resources.uploaded', { count: items.length })}</p> : null}
    </Modal>
  )
}
