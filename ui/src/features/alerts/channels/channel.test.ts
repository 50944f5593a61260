import { expect, it } from 'vitest'
import type { AlertChannel, AlertChannelKind } from '@/api/types'
import { bodyOf, optionsOf, placeOf, valuesOf, type Values } from './channel'

const webhook: AlertChannelKind = {
  kind: 'webhook',
  needs_addresses: false,
  options_schema: {
    properties: {
      url: { type: 'string', default: '' },
      url_secret: { type: 'string', default: '' },
      headers: { type: 'object', additionalProperties: { type: 'string' } },
      arguments: { type: 'array', items: { type: 'string' } },
      port: { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }], default: null },
      ca_certificate: { type: 'string', default: '', maxLength: 100_000 },
    },
  },
}
const channel = (options: object): AlertChannel => ({ name: 'chat', version: 1, created_at: '', updated_at: '', spec: { kind: 'webhook', options, enabled: true, per_minute: 60, description: '' } })

it('makes fields of what the kind says', () => {
  expect(optionsOf(webhook).map(({ field }) => field.kind)).toEqual(['text', 'text', 'pairs', 'texts', 'number', 'text'])
  expect(optionsOf(webhook).at(-1)?.field).toMatchObject({ isLong: true })
})

it('sends what it shows', () => {
  const options = { url: 'https://example.org', headers: { 'X-Team': 'ops' }, arguments: ['a'], port: 8080 }
  const values = valuesOf(channel(options)) as Values
  expect(values.options.headers).toEqual([{ name: 'X-Team', value: 'ops' }])
  expect(bodyOf(values, webhook)).toEqual({ kind: 'webhook', options, enabled: true, per_minute: 60, description: '' })
})

it('sends nothing of what is empty, or of another kind', () => {
  const values = { name: 'chat', kind: 'webhook', enabled: true, per_minute: 60, options: { url: '', headers: [], arguments: [], port: null, of_mail: 'x' } } as unknown as Values
  expect(bodyOf(values, webhook).options).toEqual({})
})

it('tells where messages go', () => {
  expect(placeOf(channel({ url: 'https://example.org/hook' }))).toBe('https://example.org/hook')
  expect(placeOf(channel({ host: 'smtp.example.org', port: 587 }))).toBe('smtp.example.org:587')
  expect(placeOf(channel({ url_secret: 'slack' }))).toBe('${secret.slack}')
  expect(placeOf(channel({ name: 'page.sh' }))).toBe('page.sh')
  expect(placeOf(channel({}))).toBe('')
})
