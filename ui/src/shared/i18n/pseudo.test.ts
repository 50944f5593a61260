import { expect, it } from 'vitest'
import { en } from './en'
import { pseudo } from './pseudo'

it('has every key, in brackets, with the same places for values', () => {
  const made = pseudo()
  expect(Object.keys(made)).toEqual(Object.keys(en))
  expect(made['common.rows_other']).toBe('⟦{{count}} róws·····⟧')
})
