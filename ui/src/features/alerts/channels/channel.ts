/** Channels as their form has them: options by the schema of their kind. Pure. */
import type { AlertChannel, AlertChannelIn, AlertChannelKind } from '@/api/types'
import { propertiesOf, type Property } from '@/shared/schema-form/schema'

export type OptionValue = string | number | boolean | string[] | Pair[] | null | undefined

/** A name with a text, such as a header. */
export interface Pair {
  name: string
  value: string
}

export interface Values {
  name: string
  kind: string
  description: string
  enabled: boolean
  per_minute: number
  options: Record<string, OptionValue>
}

interface Stored {
  kind: string
  options: Record<string, unknown>
  enabled: boolean
  per_minute: number
  description: string
}

export function specOf(channel: AlertChannel): Stored {
  return channel.spec as unknown as Stored
}

export function optionsOf(kind: AlertChannelKind): Property[] {
  return propertiesOf(kind.options_schema)
}

/** Says whether an option is the name of a secret of the project. */
export function isSecret(option: string): boolean {
  return option.endsWith('_secret')
}

export function valuesOf(channel: AlertChannel): Partial<Values> {
  const { options, ...spec } = specOf(channel)
  const shown = Object.entries(options).map(([name, value]): [string, OptionValue] => [name, isMap(value) ? Object.entries(value).map(([one, text]) => ({ name: one, value: text })) : (value as OptionValue)])
  return { ...spec, name: channel.name, options: Object.fromEntries(shown) }
}

/** Returns the request: of the options, what the kind has and what was given. */
export function bodyOf({ kind: chosen, enabled, per_minute, description, options }: Values, kind: AlertChannelKind): AlertChannelIn {
  const given = optionsOf(kind).flatMap(({ name, field }): [string, unknown][] => {
    const value = options?.[name]
    if (value === undefined || value === null || value === '') return []
    if (field.kind === 'pairs') {
      const pairs = (value as Pair[]).filter((pair) => pair?.name)
      return pairs.length ? [[name, Object.fromEntries(pairs.map((pair) => [pair.name, pair.value ?? '']))]] : []
    }
    return Array.isArray(value) && !value.length ? [] : [[name, value]]
  })
  return { kind: chosen, enabled, per_minute, description: description ?? '', options: Object.fromEntries(given) }
}

/** Returns where messages of a channel go, as far as its options say so. */
export function placeOf({ spec }: AlertChannel): string {
  const options = (spec as unknown as Stored).options
  const of = (name: string): string => (typeof options[name] === 'string' ? options[name] : '')
  const secret = Object.keys(options).find((name) => isSecret(name) && options[name] && /^(url|address)/.test(name))
  if (of('url')) return of('url')
  if (of('host')) return `${of('host')}${typeof options.port === 'number' ? `:${options.port}` : ''}`
  return of('name') || (secret ? `\${secret.${of(secret)}}` : '')
}

function isMap(value: unknown): value is Record<string, string> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
