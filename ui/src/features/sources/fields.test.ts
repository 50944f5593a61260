import { expect, it } from 'vitest'
import { fieldsOf, optionsOf } from './fields'

const schema = {
  properties: {
    ca: { anyOf: [{ type: 'string', maxLength: 65536 }, { type: 'null' }], default: null },
    timeout: { type: 'integer', default: 10, minimum: 1, maximum: 300, description: 'Seconds.' },
    mode: { type: 'string', enum: ['a', 'b'], default: 'a' },
    only: { type: 'boolean', default: false },
  },
}

it('makes a field of each property, also of those that may be null', () => {
  const fields = fieldsOf(schema)
  expect(fields.map(({ name, type, standard }) => [name, type, standard])).toEqual([['ca', 'long', null], ['timeout', 'integer', '10'], ['mode', 'choice', 'a'], ['only', 'boolean', 'false']])
  expect(fields[1]).toMatchObject({ minimum: 1, maximum: 300, description: 'Seconds.' })
  expect(fieldsOf({})).toEqual([])
})

it('sends what was given, typed', () => {
  expect(optionsOf(fieldsOf(schema), { ca: '', timeout: 5, mode: 'b', only: false, other: 'x' })).toEqual({ timeout: 5, mode: 'b', only: false })
})
