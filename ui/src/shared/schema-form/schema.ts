/** What fields a JSON schema asks for, as forms need it. Pure; knows the part of JSON schema that pydantic writes. */
export interface Schema {
  $ref?: string
  $defs?: Record<string, Schema>
  type?: string
  title?: string
  description?: string
  default?: unknown
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  discriminator?: { propertyName: string; mapping?: Record<string, string> }
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  patternProperties?: Record<string, Schema>
  minimum?: number
  maximum?: number
  maxLength?: number
  exclusiveMinimum?: number
  ge?: number
  'x-editor'?: string
  'x-ref'?: string
  'x-kinds'?: string[]
  [more: string]: unknown
}

export type Field =
  | { kind: 'text'; ref?: Reference; isNumberToo?: boolean; isLong?: boolean }
  | { kind: 'script' }
  | { kind: 'number'; isWhole: boolean; min?: number; max?: number }
  | { kind: 'boolean' }
  | { kind: 'choice'; options: readonly string[] }
  | { kind: 'texts'; ref?: Reference } // a list of texts
  | { kind: 'list'; item: Field }
  | { kind: 'pairs' } // texts by name
  | { kind: 'object'; properties: readonly Property[] }
  | { kind: 'union'; tag: string; options: readonly { value: string; properties: readonly Property[] }[] }
  | { kind: 'any' } // written as YAML

export interface Reference {
  to: string
  kinds?: readonly string[]
}

export interface Property {
  name: string
  description: string
  isRequired: boolean
  standard: unknown // undefined: none
  field: Field
}

const LONG = 10_000 // characters: a text that may be longer has several lines
const DEEPEST = 6 // schemas that name themselves go on for ever

/** Returns a schema with its descriptions in another language, as far as `texts` has them. */
export function translated(schema: Schema, texts: Readonly<Record<string, string>>): Schema {
  const all = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(all)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, own]) => [key, key === 'description' && typeof own === 'string' ? (texts[own] ?? own) : all(own)]))
  }
  return all(schema) as Schema
}

/** Returns the fields of an object, in the order of its schema. */
export function propertiesOf(schema: Schema, root: Schema = schema, depth = 0): Property[] {
  return Object.entries(schema.properties ?? {}).map(([name, own]) => {
    const plain = resolved(own, root)
    return {
      name,
      description: own.description ?? (own.$ref ? '' : plain.description) ?? '',
      isRequired: schema.required?.includes(name) ?? false,
      standard: own.default === null ? undefined : own.default,
      field: fieldOf(own, root, depth),
    }
  })
}

/** Returns how a value of a schema is edited. */
export function fieldOf(given: Schema, root: Schema, depth = 0): Field {
  if (depth > DEEPEST) return { kind: 'any' }
  const schema = resolved(given, root)
  const ref = referenceOf(given) ?? referenceOf(schema)
  const options = (schema.anyOf ?? []).map((one) => resolved(one, root)).filter((one) => one.type !== 'null')
  if (options.length === 1 && options[0]) {
    const only = options[0]
    return fieldOf({ ...only, ...(ref && !only['x-ref'] ? { 'x-ref': ref.to, 'x-kinds': [...(ref.kinds ?? [])] } : {}), ...(given['x-editor'] ? { 'x-editor': given['x-editor'] } : {}) }, root, depth)
  }
  if (options.length > 1) return several(options, root, ref)
  if (schema.oneOf) return union(schema, root, depth)
  if (schema.const !== undefined) return { kind: 'choice', options: [text(schema.const)] }
  if (schema.enum) return { kind: 'choice', options: schema.enum.map(text) }
  switch (schema.type) {
    case 'string':
      return given['x-editor'] === 'script' || schema['x-editor'] === 'script' ? { kind: 'script' } : { kind: 'text', ...(ref ? { ref } : {}), ...((schema.maxLength ?? 0) > LONG ? { isLong: true } : {}) }
    case 'integer':
    case 'number':
      return { kind: 'number', isWhole: schema.type === 'integer', ...range(schema) }
    case 'boolean':
      return { kind: 'boolean' }
    case 'array': {
      const item = schema.items ? fieldOf(schema.items, root, depth + 1) : { kind: 'any' as const }
      if (item.kind === 'text') return { kind: 'texts', ...(ref ?? item.ref ? { ref: (ref ?? item.ref) as Reference } : {}) }
      return item.kind === 'object' || item.kind === 'union' ? { kind: 'list', item } : { kind: 'any' }
    }
    case 'object':
      if (schema.properties) return { kind: 'object', properties: propertiesOf(schema, root, depth + 1) }
      return isOfTexts(schema, root) ? { kind: 'pairs' } : { kind: 'any' }
    default:
      return { kind: 'any' }
  }
}

function several(options: readonly Schema[], root: Schema, ref: Reference | undefined): Field {
  const types = new Set(options.map((one) => one.type))
  const list = options.find((one) => one.type === 'array')
  if (list && types.has('string') && types.size === 2 && list.items && resolved(list.items, root).type === 'string') return { kind: 'texts', ...(ref ? { ref } : {}) }
  const isScalar = [...types].every((type) => type === 'string' || type === 'number' || type === 'integer')
  return isScalar ? { kind: 'text', isNumberToo: true } : { kind: 'any' }
}

function union(schema: Schema, root: Schema, depth: number): Field {
  const tag = schema.discriminator?.propertyName
  if (!tag) return { kind: 'any' }
  const options = Object.entries(schema.discriminator?.mapping ?? {}).map(([value, ref]) => ({
    value,
    properties: propertiesOf(resolved({ $ref: ref }, root), root, depth + 1).filter((one) => one.name !== tag),
  }))
  return { kind: 'union', tag, options }
}

function resolved(schema: Schema, root: Schema): Schema {
  if (!schema.$ref) return schema
  const name = schema.$ref.split('/').at(-1) ?? ''
  const own = Object.fromEntries(Object.entries(schema).filter(([key]) => key !== '$ref'))
  return { ...(root.$defs?.[name] ?? {}), ...own }
}

function referenceOf(schema: Schema): Reference | undefined {
  const to = schema['x-ref']
  return to ? { to, ...(schema['x-kinds']?.length ? { kinds: schema['x-kinds'] } : {}) } : undefined
}

function range(schema: Schema): { min?: number; max?: number } {
  const min = schema.minimum ?? schema.exclusiveMinimum ?? schema.ge
  return { ...(min === undefined ? {} : { min }), ...(schema.maximum === undefined ? {} : { max: schema.maximum }) }
}

function isOfTexts(schema: Schema, root: Schema): boolean {
  const values = [schema.additionalProperties, ...Object.values(schema.patternProperties ?? {})].filter((one): one is Schema => typeof one === 'object')
  const kinds = values.map((one) => fieldOf(one, root, DEEPEST - 1).kind)
  return kinds.length > 0 && kinds.every((kind) => kind === 'text' || kind === 'choice')
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns a value as it was typed into a field that also takes numbers. */
export function typed(field: Field, value: string): unknown {
  if (field.kind === 'text' && field.isNumberToo && /^-?\d+(\.\d+)?$/.test(value.trim())) return Number(value)
  return value
}
