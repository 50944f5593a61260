import { describe, expect, it } from 'vitest'
import { fieldOf, propertiesOf, translated, typed, type Schema } from './schema'

const root: Schema = {
  type: 'object',
  required: ['source'],
  properties: {
    source: { type: 'string', 'x-ref': 'data-source', 'x-kinds': ['ssh'] },
    script: { anyOf: [{ type: 'string', 'x-editor': 'script' }, { type: 'null' }], default: null, description: 'What runs.' },
    file: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null, 'x-ref': 'resource' },
    shell: { enum: ['sh', 'bash'], type: 'string', default: 'sh' },
    after: { anyOf: [{ type: 'string' }, { type: 'number' }], ge: 0 },
    count: { anyOf: [{ type: 'integer', minimum: 1, maximum: 9 }, { type: 'null' }] },
    then: { anyOf: [{ type: 'string' }, { items: { type: 'string' }, type: 'array' }] },
    headers: { type: 'object', additionalProperties: { type: 'string' } },
    types: { type: 'object', patternProperties: { '^x$': { $ref: '#/$defs/Kind' } } },
    mounts: { type: 'array', items: { $ref: '#/$defs/Mount' } },
    checks: { type: 'array', items: { oneOf: [{ $ref: '#/$defs/Mount' }], discriminator: { propertyName: 'check', mapping: { a: '#/$defs/Mount' } } } },
    tree: { $ref: '#/$defs/Tree' },
    free: { type: 'object', additionalProperties: { anyOf: [{ type: 'string' }, { items: {}, type: 'array' }] } },
  },
  $defs: {
    Kind: { enum: ['int', 'text'], type: 'string' },
    Mount: { type: 'object', required: ['path'], properties: { path: { type: 'string' }, only: { type: 'boolean', default: false } } },
    Tree: { type: 'object', properties: { not: { anyOf: [{ $ref: '#/$defs/Tree' }, { type: 'null' }] } } },
  },
}

describe('fields', () => {
  const fields = Object.fromEntries(propertiesOf(root).map((one) => [one.name, one.field]))
  it.each([
    ['source', { kind: 'text', ref: { to: 'data-source', kinds: ['ssh'] } }],
    ['script', { kind: 'script' }],
    ['file', { kind: 'text', ref: { to: 'resource' } }],
    ['shell', { kind: 'choice', options: ['sh', 'bash'] }],
    ['after', { kind: 'text', isNumberToo: true }],
    ['count', { kind: 'number', isWhole: true, min: 1, max: 9 }],
    ['then', { kind: 'texts' }],
    ['headers', { kind: 'pairs' }],
    ['types', { kind: 'pairs' }],
    ['free', { kind: 'any' }],
  ])('%s', (name, field) => expect(fields[name]).toEqual(field))

  it('goes into objects, lists and unions', () => {
    const mount = propertiesOf(root.$defs?.Mount ?? {})
    expect(fields.mounts).toEqual({ kind: 'list', item: { kind: 'object', properties: mount } })
    expect(fields.checks).toEqual({ kind: 'list', item: { kind: 'union', tag: 'check', options: [{ value: 'a', properties: mount }] } })
  })

  it('ends where a schema names itself', () => expect(JSON.stringify(fields.tree)).toContain('"any"'))

  it('knows what must be given, and what stands for nothing', () => {
    const [source, script, , shell] = propertiesOf(root)
    expect([source?.isRequired, script?.isRequired, script?.standard, script?.description, shell?.standard]).toEqual([true, false, undefined, 'What runs.', 'sh'])
  })
})

it('takes numbers for numbers where both may stand', () => {
  const field = fieldOf({ anyOf: [{ type: 'string' }, { type: 'number' }] }, {})
  expect([typed(field, '90'), typed(field, '90s'), typed({ kind: 'text' }, '90')]).toEqual([90, '90s', '90'])
})

it('says descriptions in another language, those of parts as well, and keeps what has no other', () => {
  const texts = { 'Name of a data source.': 'Chinese A', 'How long.': 'Chinese B' }
  const schema: Schema = { properties: { source: { type: 'string', description: 'Name of a data source.' }, poll: { $ref: '#/$defs/Poll' }, own: { type: 'string', description: 'Own.' } }, $defs: { Poll: { type: 'object', properties: { every: { type: 'string', description: 'How long.' } } } } }
  const [source, poll, own] = propertiesOf(translated(schema, texts))
  expect([source?.description, own?.description, poll?.field.kind === 'object' ? poll.field.properties[0]?.description : '']).toEqual(['Chinese A', 'Own.', 'Chinese B'])
})
