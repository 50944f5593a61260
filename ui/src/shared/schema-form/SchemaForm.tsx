/** A form made from a JSON schema. Each change tells the path of the one value that it is about. */
import { DeleteOutlined, PlusOutlined } from '@ant-design/icons'
import { Button, InputNumber, Select, Switch } from 'antd'
import { createContext, useContext, useId, useMemo, type ReactNode } from 'react'
import { useT } from '@/shared/i18n'
import { BufferedInput } from './BufferedInput'
import { typed, type Field, type Property, type Reference } from './schema'
import './schema-form.css'

export type FormPath = readonly (string | number)[]

export interface FormContext {
  isDisabled: boolean
  onChange: (path: FormPath, value: unknown) => void // undefined: take it out
  problemAt: (path: FormPath) => string | undefined
  /** What may stand where a reference is; undefined: anything. */
  optionsOf: (ref: Reference) => readonly string[] | undefined
  script: (props: { value: string; label: string; onChange: (value: string) => void }) => ReactNode
  writeAny: (value: unknown) => string
  /** Reads what was written for a value of any shape. Throws. */
  readAny: (text: string) => unknown
}

const Context = createContext<FormContext | null>(null)

function useForm(): FormContext {
  const found = useContext(Context)
  if (!found) throw new Error('a form gives its context')
  return found
}

interface Props extends FormContext {
  properties: readonly Property[]
  value: Readonly<Record<string, unknown>>
  path?: FormPath
  /** Properties that are shown though nothing is set; others can be added. */
  first?: readonly string[]
}

export function SchemaForm({ properties, value, path = [], first, ...context }: Props) {
  const given = useMemo(
    () => context,
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [context.isDisabled, context.onChange, context.problemAt, context.optionsOf, context.script, context.writeAny, context.readAny],
  )
  return (
    <Context.Provider value={given}>
      <Properties properties={properties} value={value} path={path} {...(first ? { first } : {})} />
    </Context.Provider>
  )
}

/** The fields of one object: those that are set, required or usual; the others wait in a list. */
function Properties({ properties, value, path, first }: { properties: readonly Property[]; value: Readonly<Record<string, unknown>>; path: FormPath; first?: readonly string[] }) {
  const t = useT()
  const { isDisabled, onChange } = useForm()
  const isShort = properties.length <= 5
  const isShown = (one: Property): boolean => isShort || one.isRequired || one.name in value || (first?.includes(one.name) ?? false)
  const hidden = properties.filter((one) => !isShown(one))
  const unknown = Object.keys(value).filter((name) => !properties.some((one) => one.name === name))
  return (
    <div className="form-fields">
      {properties.filter(isShown).map((one) => (
        <PropertyField key={one.name} property={one} value={value[one.name]} path={[...path, one.name]} />
      ))}
      {unknown.map((name) => (
        <PropertyField key={name} property={{ name, description: t('form.unknown'), isRequired: false, standard: undefined, field: { kind: 'any' } }} value={value[name]} path={[...path, name]} />
      ))}
      {hidden.length && !isDisabled ? (
        <Select
          className="form-add"
          size="small"
          showSearch
          value={null}
          placeholder={t('form.addField')}
          aria-label={t('form.addField')}
          popupMatchSelectWidth={280}
          options={hidden.map((one) => ({ value: one.name, label: <span title={one.description}><code>{one.name}</code></span> }))}
          onSelect={(name: string | null) => {
            const found = hidden.find((one) => one.name === name)
            if (found) onChange([...path, found.name], startOf(found))
          }}
        />
      ) : null}
    </div>
  )
}

/** Returns what a field begins with when it is added: something of its kind. */
function startOf({ field, standard }: Property): unknown {
  if (standard !== undefined) return standard
  switch (field.kind) {
    case 'boolean':
      return true
    case 'number':
      return field.min ?? 0
    case 'choice':
      return field.options[0] ?? ''
    case 'texts':
    case 'list':
      return []
    case 'pairs':
    case 'object':
      return {}
    case 'union':
      return { [field.tag]: field.options[0]?.value ?? '' }
    default:
      return ''
  }
}

function PropertyField({ property, value, path }: { property: Property; value: unknown; path: FormPath }) {
  const t = useT()
  const { isDisabled, onChange, problemAt } = useForm()
  const id = useId()
  const problem = problemAt(path)
  const { name, description, isRequired, standard, field } = property
  const isSet = value !== undefined
  return (
    <div className={problem ? 'form-field bad' : 'form-field'} data-field={path.join('.')}>
      <div className="form-label">
        <label htmlFor={id}><code>{name}</code>{isRequired ? <span className="form-must" title={t('form.required')}> *</span> : null}</label>
        {isSet && !isRequired && !isDisabled ? <Button className="form-clear" type="text" size="small" icon={<DeleteOutlined />} aria-label={t('form.remove', { name })} onClick={() => onChange(path, undefined)} /> : null}
      </div>
      <Value id={id} field={field} value={value} standard={standard} path={path} label={name} />
      {problem ? <p className="form-problem" role="alert">{problem}</p> : null}
      {description ? <p className="form-help">{description}</p> : null}
    </div>
  )
}

function Value({ id, field, value, standard, path, label }: { id: string; field: Field; value: unknown; standard?: unknown; path: FormPath; label: string }) {
  const t = useT()
  const form = useForm()
  const { isDisabled, onChange } = form
  const put = (next: unknown): void => onChange(path, next)
  const hint = standard === undefined || standard === '' ? undefined : typeof standard === 'string' ? standard : JSON.stringify(standard)
  switch (field.kind) {
    case 'script':
      return form.script({ value: textOf(value), label, onChange: (next) => put(next) })
    case 'boolean':
      return typeof value === 'string' ? <BufferedInput id={id} value={value} isDisabled={isDisabled} onCommit={put} /> : <Switch id={id} size="small" aria-label={label} checked={(value ?? standard) === true} disabled={isDisabled} onChange={put} />
    case 'number':
      return typeof value === 'string'
        ? <BufferedInput id={id} value={value} isDisabled={isDisabled} onCommit={(next) => put(next === '' ? undefined : Number.isFinite(Number(next)) ? Number(next) : next)} />
        : <InputNumber id={id} size="small" className="full" value={(value as number | undefined) ?? null} placeholder={hint} disabled={isDisabled} min={field.min} max={field.max} {...(field.isWhole ? { precision: 0 } : {})} onChange={(next) => put(next ?? undefined)} />
    case 'choice':
      return <Select id={id} size="small" className="full" aria-label={label} disabled={isDisabled} value={value === undefined ? null : textOf(value)} placeholder={hint} allowClear onChange={(next: string | null | undefined) => put(next ?? undefined)} options={field.options.map((one) => ({ value: one, label: one || t('form.none') }))} />
    case 'text': {
      const options = field.ref ? form.optionsOf(field.ref) : undefined
      return <BufferedInput id={id} value={textOf(value)} placeholder={hint} isDisabled={isDisabled} options={options} onCommit={(next) => put(next === '' ? undefined : typed(field, next))} />
    }
    case 'texts': {
      const options = field.ref ? form.optionsOf(field.ref) : undefined
      const own = Array.isArray(value) ? value.map(textOf) : value === undefined || value === '' ? [] : [textOf(value)]
      return <Select id={id} size="small" className="full" mode="tags" aria-label={label} disabled={isDisabled} value={own} placeholder={hint === '[]' ? t('form.listHint') : hint} tokenSeparators={['\n']} onChange={(next: string[]) => put(next.length ? next : undefined)} options={(options ?? []).map((one) => ({ value: one, label: one }))} />
    }
    case 'pairs':
      return <Pairs value={isObject(value) ? value : {}} path={path} />
    case 'object':
      return <div className="form-inner"><Properties properties={field.properties} value={isObject(value) ? value : {}} path={path} /></div>
    case 'list':
      return <List field={field} value={Array.isArray(value) ? value : []} path={path} label={label} />
    case 'union':
      return <Union field={field} value={isObject(value) ? value : {}} path={path} label={label} />
    default:
      return <Any id={id} value={value} label={label} onPut={put} />
  }
}

function Pairs({ value, path }: { value: Readonly<Record<string, unknown>>; path: FormPath }) {
  const t = useT()
  const { isDisabled, onChange } = useForm()
  const names = Object.keys(value)
  const free = (): string => {
    for (let number = 1; ; number += 1) if (!names.includes(`name${number}`)) return `name${number}`
  }
  return (
    <div className="form-pairs">
      {names.map((name) => (
        <div key={name} className="form-pair">
          <BufferedInput value={name} isDisabled={isDisabled} label={t('form.name')} onCommit={(next) => {
            if (next === name || next === '' || names.includes(next)) return
            onChange(path, Object.fromEntries(Object.entries(value).map(([key, one]) => [key === name ? next : key, one])))
          }} />
          <BufferedInput value={textOf(value[name])} isDisabled={isDisabled} label={t('form.valueOf', { name })} onCommit={(next) => onChange([...path, name], next)} />
          <Button type="text" size="small" icon={<DeleteOutlined />} disabled={isDisabled} aria-label={t('form.remove', { name })} onClick={() => onChange([...path, name], undefined)} />
        </div>
      ))}
      <Button size="small" type="dashed" icon={<PlusOutlined />} disabled={isDisabled} onClick={() => onChange([...path, free()], '')}>{t('form.add')}</Button>
    </div>
  )
}

function List({ field, value, path, label }: { field: Field & { kind: 'list' }; value: readonly unknown[]; path: FormPath; label: string }) {
  const t = useT()
  const { isDisabled, onChange } = useForm()
  const fresh = startOf({ name: '', description: '', isRequired: false, standard: undefined, field: field.item })
  return (
    <div className="form-list">
      {value.map((one, at) => (
        <div key={at} className="form-item">
          <div className="form-item-head">
            <span className="dim num">{at + 1}</span>
            <Button type="text" size="small" icon={<DeleteOutlined />} disabled={isDisabled} aria-label={t('form.remove', { name: `${label} ${at + 1}` })} onClick={() => onChange([...path, at], undefined)} />
          </div>
          <Value id={`${path.join('-')}-${at}`} field={field.item} value={one} path={[...path, at]} label={`${label} ${at + 1}`} />
        </div>
      ))}
      <Button size="small" type="dashed" icon={<PlusOutlined />} disabled={isDisabled} onClick={() => onChange([...path, value.length], fresh)}>{t('form.add')}</Button>
    </div>
  )
}

function Union({ field, value, path, label }: { field: Field & { kind: 'union' }; value: Readonly<Record<string, unknown>>; path: FormPath; label: string }) {
  const { isDisabled, onChange } = useForm()
  const chosen = field.options.find((one) => one.value === value[field.tag])
  return (
    <div className="form-inner">
      <Select size="small" className="full" aria-label={`${label} ${field.tag}`} disabled={isDisabled} value={chosen?.value ?? null} onChange={(next: string | null) => next && onChange(path, { [field.tag]: next })} options={field.options.map((one) => ({ value: one.value, label: one.value }))} />
      {chosen ? <Properties properties={chosen.properties} value={Object.fromEntries(Object.entries(value).filter(([name]) => name !== field.tag))} path={path} /> : null}
    </div>
  )
}

function Any({ id, value, label, onPut }: { id: string; value: unknown; label: string; onPut: (value: unknown) => void }) {
  const t = useT()
  const { isDisabled, writeAny, readAny } = useForm()
  const mistake = (text: string): string | null => {
    try {
      readAny(text)
      return null
    } catch {
      return t('form.noYaml')
    }
  }
  return <BufferedInput id={id} isLong label={label} value={value === undefined ? '' : writeAny(value)} placeholder="YAML" isDisabled={isDisabled} mistakeOf={mistake} onCommit={(next) => onPut(next.trim() === '' ? undefined : readAny(next))} />
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
