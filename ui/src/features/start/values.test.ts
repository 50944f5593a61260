import { describe, expect, it } from 'vitest'
import { given, mistakeOf, parametersOf, type Parameter } from './values'

const parameter = (type: Parameter['type'], standard: string | null = null): Parameter => ({ name: 'x', type, standard, description: '' })

describe('parametersOf', () => {
  it('takes bare values as defaults, and none as one that must be given', () => {
    const found = parametersOf({ parameters: { day: '${date}', n: { type: 'integer', default: '3' }, must: {} } })
    expect(found.map(({ name, type, standard }) => [name, type, standard])).toEqual([
      ['day', 'string', '${date}'],
      ['n', 'integer', '3'],
      ['must', 'string', null],
    ])
    expect(parametersOf({})).toEqual([])
  })
})

describe('mistakeOf', () => {
  it.each([
    ['integer', '12', null],
    ['integer', '1.5', 'integer'],
    ['number', '1e3', null],
    ['number', ' ', 'number'],
    ['date', '2026-01-31', null],
    ['date', '31.1.2026', 'date'],
    ['string', 'anything', null],
    ['string', '', 'required'],
  ] as const)('%s %j: %s', (type, value, expected) => expect(mistakeOf(parameter(type), value)).toBe(expected))
  it('takes nothing where there is a default', () => expect(mistakeOf(parameter('integer', '3'), undefined)).toBeNull())
})

it('sends what was given, and no more', () => {
  expect(given({ a: '1', b: '', c: undefined })).toEqual({ a: '1' })
})
