import { expect, it } from 'vitest'
import { secretsOf, withSecrets } from './secrets'

const OWN = { password: '${secret.db_password}', day: '${day}', both: 'x${secret.key}' }

it('finds parameters that are a secret each', () => {
  expect(secretsOf(OWN)).toEqual({ password: 'db_password' })
  expect([secretsOf(undefined), secretsOf('x')]).toEqual([{}, {}])
})

it('adds a secret as a parameter of its name, and takes away those that are not wanted', () => {
  expect(withSecrets(OWN, ['db_password', 'day'])).toEqual({ ...OWN, day_2: '${secret.day}' })
  expect(withSecrets(OWN, [])).toEqual({ day: '${day}', both: 'x${secret.key}' })
  expect(withSecrets({ password: '${secret.db_password}' }, [])).toBeUndefined()
  expect(withSecrets(undefined, ['2.key'])).toEqual({ _2_key: '${secret.2.key}' })
})
