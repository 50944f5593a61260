/** A text field that tells what was typed when typing pauses, and keeps what is typed meanwhile. */
import { AutoComplete, Input } from 'antd'
import { useEffect, useRef, useState } from 'react'

const PAUSE_MS = 250

interface Props {
  id?: string
  value: string
  onCommit: (value: string) => void
  label?: string
  placeholder?: string | undefined
  isDisabled?: boolean
  isLong?: boolean
  options?: readonly string[] | undefined
  /** Why a text is not told; null: it is. */
  mistakeOf?: (text: string) => string | null
  /** Wait for the end of typing: Enter, or going elsewhere. */
  isLate?: boolean
  autoFocus?: boolean
}

export function BufferedInput({ id, value, onCommit, label, placeholder, isDisabled = false, isLong = false, options, mistakeOf, isLate = false, autoFocus = false }: Props) {
  const [text, setText] = useState(value)
  const [isFocused, setFocused] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const latest = useRef({ text, value, onCommit, mistakeOf })
  latest.current = { text, value, onCommit, mistakeOf }
  const commit = (): void => {
    clearTimeout(timer.current)
    timer.current = undefined
    const now = latest.current
    if (now.text !== now.value && !now.mistakeOf?.(now.text)) now.onCommit(now.text)
  }
  useEffect(() => {
    if (!isFocused && timer.current === undefined) setText(value)
  }, [value, isFocused])
  // What is typed is not lost when the field goes.
  useEffect(() => () => {
    if (timer.current !== undefined) commit()
  }, [])
  const change = (next: string): void => {
    setText(next)
    latest.current.text = next
    clearTimeout(timer.current)
    if (!isLate) timer.current = setTimeout(commit, PAUSE_MS)
  }
  const blur = (): void => {
    setFocused(false)
    commit()
  }
  const mistake = text === value ? null : mistakeOf?.(text)
  const shared = {
    ...(id ? { id } : {}),
    ...(label ? { 'aria-label': label } : {}),
    placeholder,
    disabled: isDisabled,
    autoFocus,
    value: text,
    onFocus: () => setFocused(true),
    onBlur: blur,
  }
  const field = isLong ? (
    <Input.TextArea size="small" className="mono" autoSize={{ minRows: 2, maxRows: 12 }} {...shared} {...(mistake ? { status: 'error' as const } : {})} onChange={(event) => change(event.target.value)} />
  ) : options ? (
    <AutoComplete size="small" className="full" {...shared} onChange={(next: string | undefined) => change(next ?? '')} onSelect={(next) => { change(next ?? ''); commit() }} options={options.filter((one) => one.toLowerCase().includes(text.toLowerCase())).map((one) => ({ value: one }))} />
  ) : (
    <Input size="small" {...shared} onChange={(event) => change(event.target.value)} onPressEnter={commit} />
  )
  return mistake ? <>{field}<p className="form-problem" role="alert">{mistake}</p></> : field
}
