/** What may be typed next in a definition: fields, types, tasks, macros. Pure. */
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { SCHEDULE_FIELDS, TASK_FIELDS, WORKFLOW_FIELDS, WORKFLOW_ORDER } from '@/definition/fields'
import { isPlain, type Parsed } from '@/definition/parse'
import { TASK_ORDER } from '@/definition/tasks'
import { propertiesOf, type Field, type Schema, type Property } from '@/shared/schema-form/schema'

export interface Known {
  types: ReadonlyMap<string, Schema>
  parsed: Parsed
  /** Parameters and secrets of the project. */
  parameters: readonly string[]
  secrets: readonly string[]
}

const DATES: [string, string][] = [
  ['$[yyyy-MM-dd]', 'logical date'], ['$[yyyy-MM-dd-1]', 'the day before'], ['$[yyyyMMdd]', ''], ['$[yyyy-MM-dd HH:mm:ss]', ''], ['$[add_months(yyyy-MM-dd,-1)]', 'a month before'],
  ['${system.biz.date}', 'yyyyMMdd, the day before'], ['${system.biz.curdate}', 'yyyyMMdd'], ['${system.datetime}', 'yyyyMMddHHmmss'],
  ['${system.workflow.instance.id}', ''], ['${system.task.instance.id}', ''], ['${system.workflow.definition.name}', ''],
]

/** Values: parameters, secrets, dates, wherever a text holds `$`. */
export function values(known: Known, context: CompletionContext): CompletionResult | null {
  const found = context.matchBefore(/\$[{[]?[\w.]*/)
  if (!found) return null
  const own = isPlain(known.parsed.value?.parameters) ? Object.keys(known.parsed.value.parameters) : []
  const options: Completion[] = [
    ...own.map((name) => ({ label: `\${${name}}`, detail: 'parameter', boost: 2 })),
    ...known.parameters.map((name) => ({ label: `\${${name}}`, detail: 'project' })),
    ...known.secrets.map((name) => ({ label: `\${secret.${name}}`, detail: 'secret' })),
    ...DATES.map(([label, detail]) => ({ label, detail })),
  ]
  return { from: found.from, options, validFor: /^\$[{[]?[\w.]*$/ }
}

export function yamlCompletion(known: () => Known) {
  return (context: CompletionContext): CompletionResult | null => {
    const now = known()
    const byValue = values(now, context)
    if (byValue) return byValue
    const line = context.state.doc.lineAt(context.pos)
    const before = line.text.slice(0, context.pos - line.from)
    const place = placeOf(context.state.doc.sliceString(0, line.from).split('\n').slice(0, -1), before)
    const word = context.matchBefore(/[\w.-]*/)
    if (!word || (word.from === word.to && !context.explicit && !/[:[,]\s*$/.test(before))) return null
    const options = place.key === null ? keys(now, place) : ofKey(now, place)
    return options.length ? { from: word.from, options, validFor: /^[\w.-]*$/ } : null
  }
}

export interface Place {
  /** Keys from the top to the mapping in which the cursor is. */
  path: readonly string[]
  /** The key whose value is typed; null: a key is. */
  key: string | null
  /** The type of the task in which it is. */
  type: string | null
}

/** Returns where in the definition a line is, by the indents above it. */
export function placeOf(above: readonly string[], before: string): Place {
  const inner = /^(\s*(?:- )*)(.*)$/.exec(before)
  let indent = inner?.[1]?.length ?? 0
  const [, flowKey] = /[{,]\s*([\w-]+):\s*[^,{}]*$/.exec(before) ?? []
  const key = flowKey ?? /^([\w-]+):\s/.exec(inner?.[2] ?? '')?.[1] ?? null
  const path: string[] = []
  let type: string | null = null
  // The item of a list that begins in this very line has no lines above that are its own.
  let isWithin = !/^\s*- /.test(before)
  for (const line of above.toReversed()) {
    const [, lead = '', rest = ''] = /^(\s*(?:- )*)(.*)$/.exec(line) ?? []
    if (!rest || rest.startsWith('#')) continue
    const own = lead.length
    const name = /^([\w-]+):/.exec(rest)?.[1]
    if (isWithin && own === indent && name === 'type' && path.length === 0) type ??= rest.slice(5).trim()
    if (own === indent && path.at(0) === 'params' && name === 'type') type ??= rest.slice(5).trim()
    if (own < indent) {
      if (name) path.unshift(name)
      indent = own
      isWithin = true
    }
    if (lead.includes('- ') && own === indent) {
      // The dash opens the item: what is above belongs to others.
      indent = lead.indexOf('-') + (lead.indexOf('-') === 0 ? 1 : 0)
      isWithin = false
    }
  }
  return { path, key, type }
}

function keys(known: Known, { path, type }: Place): Completion[] {
  const last = path.at(-1)
  const hinted = (names: readonly string[], fields: readonly Property[]): Completion[] =>
    names.map((name, at) => ({ label: name, apply: `${name}: `, detail: JSON.stringify(fields.find((one) => one.name === name)?.standard) ?? '', boost: -at }))
  if (!path.length) return hinted(WORKFLOW_ORDER, WORKFLOW_FIELDS)
  if (last === 'tasks') return hinted(TASK_ORDER, TASK_FIELDS)
  if (last === 'schedules') return hinted(['cron', 'timezone', 'on_gap', 'on_overlap', ...SCHEDULE_FIELDS.map((one) => one.name)], SCHEDULE_FIELDS)
  if (last === 'params' && type) {
    const schema = known.types.get(type)
    return schema ? propertiesOf(schema).map((one, at) => ({ label: one.name, apply: `${one.name}: `, ...(one.description ? { info: one.description } : {}), boost: one.isRequired ? 50 : -at })) : []
  }
  return []
}

function ofKey(known: Known, { path, key, type }: Place): Completion[] {
  const tasks = known.parsed.tasks.map((task): Completion => ({ label: task.name, detail: task.type }))
  if (key === 'type' && path.at(-1) === 'tasks') return [...known.types.keys()].map((label) => ({ label }))
  if (key === 'depends_on' || key === 'then' || key === 'else' || key === 'default' || path.at(-1) === 'depends_on') return tasks
  const fields: Record<string, Property[]> = { tasks: TASK_FIELDS, schedules: SCHEDULE_FIELDS }
  const own = (path.length ? fields[path.at(-1) ?? ''] : WORKFLOW_FIELDS)?.find((one) => one.name === key)
  if (own) return choices(own.field)
  const schema = path.at(-1) === 'params' && type ? known.types.get(type) : undefined
  const property = schema && propertiesOf(schema).find((one) => one.name === key)
  return property ? choices(property.field) : []
}

function choices(field: Field): Completion[] {
  if (field.kind === 'choice') return field.options.map((label) => ({ label: label || '""' }))
  return field.kind === 'boolean' ? [{ label: 'true' }, { label: 'false' }] : []
}
