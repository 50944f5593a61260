/** Fields of the options of a data source, from the JSON Schema of its kind. Pure. */
import type { DataSourceIn } from '@/api/types'

export interface OptionField {
  name: string
  type: 'text' | 'long' | 'integer' | 'number' | 'boolean' | 'choice'
  choices: string[]
  standard: string | null
  minimum: number | undefined
  maximum: number | undefined
  description: string
}

interface Schema {
  type?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  default?: unknown
  description?: string
  minimum?: number
  maximum?: number
  maxLength?: number
}

const LONG = 1000 // a text that may be longer is written in several lines

/** Returns the fields of a schema's properties, in their order. */
export function fieldsOf(schema: Record<string, unknown>): OptionField[] {
  const properties = (schema.properties ?? {}) as Record<string, Schema>
  return Object.entries(properties).map(([name, given]) => {
    const one = { ...(given.anyOf?.find((some) => some.type !== 'null') ?? {}), ...given }
    const choices = (one.enum ?? []).filter((value): value is string => typeof value === 'string')
    const type = choices.length
      ? 'choice'
      : one.type === 'boolean' || one.type === 'integer' || one.type === 'number'
        ? one.type
        : (one.maxLength ?? 0) > LONG
          ? 'long'
          : 'text'
    const { minimum, maximum } = one
    return { name, type, choices, standard: textOf(one.default), minimum, maximum, description: one.description ?? '' }
  })
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export type OptionValue = string | number | boolean | null | undefined

/** Returns the options to send: what was given, in the types that the API takes. */
export function optionsOf(fields: readonly OptionField[], values: Readonly<Record<string, OptionValue>>): NonNullable<DataSourceIn['options']> {
  return Object.fromEntries(
    fields.flatMap(({ name, type }): [string, string | number | boolean][] => {
      const value = values[name]
      if (value === undefined || value === null || value === '') return []
      if (type === 'integer' || type === 'number') return [[name, Number(value)]]
      if (type === 'boolean') return [[name, value === true || value === 'true']]
      return [[name, String(value)]]
    }),
  )
}
