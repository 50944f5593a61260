/** Jump to anything: pages, projects, workflows, the number of a run. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Input, Modal } from 'antd'
import { useDeferredValue, useState, type KeyboardEvent } from 'react'
import { projects as projectsOf, workflows as workflowsOf } from '@/entities/queries'
import { useT, type TextKey } from '@/shared/i18n'
import '@/shared/i18n/help'

interface Props {
  pages: readonly { to: string; text: TextKey }[]
  onClose: () => void
}

interface Entry {
  key: string
  kind: string
  text: string
  go: () => void
}

const MOST = 12

export function Palette({ pages, onClose }: Props) {
  const t = useT()
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const wanted = useDeferredValue(text.trim().toLowerCase())
  const projects = useQuery(projectsOf)
  const workflows = useInfiniteQuery(workflowsOf(undefined, wanted || undefined, 'name', 0))
  const has = (name: string): boolean => name.toLowerCase().includes(wanted)
  const entries: Entry[] = [
    ...(/^#?\d+$/.test(wanted) ? [{ key: 'run', kind: t('palette.run'), text: `#${wanted.replace('#', '')}`, go: () => void navigate({ to: '/runs/$id', params: { id: wanted.replace('#', '') } }) }] : []),
    ...pages.filter((page) => has(t(page.text))).map((page) => ({ key: page.to, kind: t('palette.page'), text: t(page.text), go: () => void navigate({ to: page.to }) })),
    ...(projects.data?.items ?? []).filter((one) => has(one.name)).map((one) => ({ key: `p:${one.name}`, kind: t('common.project'), text: one.name, go: () => void navigate({ to: '/workflows', search: { project: one.name } }) })),
    ...(workflows.data?.pages[0]?.items ?? []).map((one) => ({ key: `w:${one.project}/${one.name}`, kind: t('common.workflow'), text: `${one.project}/${one.name}`, go: () => void navigate({ to: '/projects/$project/workflows/$name', params: { project: one.project, name: one.name } }) })),
  ].slice(0, MOST)
  const go = (entry: Entry | undefined): void => {
    if (!entry) return
    onClose()
    entry.go()
  }
  const press = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step) {
      event.preventDefault()
      setAt((old) => (old + step + entries.length) % Math.max(1, entries.length))
    }
    if (event.key === 'Enter') go(entries[at])
  }
  return (
    <Modal open onCancel={onClose} footer={null} closable={false} title={<span className="hidden">{t('palette.title')}</span>} className="palette" destroyOnHidden>
      <Input
        autoFocus
        variant="borderless"
        size="large"
        placeholder={t('palette.hint')}
        aria-label={t('palette.hint')}
        role="combobox"
        aria-expanded
        aria-controls="palette-list"
        aria-activedescendant={entries[at] ? `palette-${at}` : undefined}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <ul id="palette-list" role="listbox" aria-label={t('palette.title')} className="palette-list">
        {entries.map((entry, index) => (
          <li key={entry.key} id={`palette-${index}`} role="option" aria-selected={index === at} className={index === at ? 'current' : undefined} onMouseMove={() => setAt(index)} onClick={() => go(entry)}>
            <span className="cut">{entry.text}</span>
            <span className="dim small">{entry.kind}</span>
          </li>
        ))}
      </ul>
      {entries.length ? null : <p className="dim pad">{t('palette.none')}</p>}
    </Modal>
  )
}
