/** Values of a start form: which input a parameter gets, and what is wrong with a value. Pure. */
import type { ParameterSpec } from '@/api/types'

export interface Parameter {
  name: string
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  standard: string | null // null: must be given
  description: string
}

export type Mistake = 'required' | 'integer' | 'number' | 'date'

/** Returns the parameters of a definition; a bare value is a default. */
export function parametersOf(definition: Record<string, unknown>): Parameter[] {
  const given = definition.parameters
  if (typeof given !== 'object' || given === null) return []
  return Object.entries(given).map(([name, value]) => {
    if (typeof value !== 'object' || value === null) {
      return { name, type: 'string', standard: value === null ? null : String(value as string), description: '' }
    }
    const spec = value as ParameterSpec
    return { name, type: spec.type ?? 'string', standard: spec.default ?? null, description: spec.description ?? '' }
  })
}

/** Returns what is wrong with a value; null: nothing. A default may be an expression, so it is not judged. */
export function mistakeOf(parameter: Parameter, value: string | undefined): Mistake | null {
  if (value === undefined || value === '') return parameter.standard === null ? 'required' : null
  switch (parameter.type) {
    case 'integer':
      return /^[+-]?\d+$/.test(value) ? null : 'integer'
    case 'number':
      return Number.isFinite(Number(value)) && value.trim() !== '' ? null : 'number'
    case 'date':
      return /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value)) ? null : 'date'
    default:
      return null
  }
}

/** Returns the values to send: those that were given. */
export function given(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== ''))
}
