import { expect, test } from 'vitest'
import { ApiProblem, takeTagged } from './client'
import { isSentAgain, isSentAgainIfRefusedForNow, pauseMs } from './retries'

async function refusal(status: number, headers: Record<string, string>): Promise<Error> {
  const response = new Response(null, { status, headers })
  return takeTagged(Promise.resolve({ error: {}, response })).then(
    () => new Error('it was no refusal'),
    (error: Error) => error,
  )
}

test('a query that is refused for now is sent again after the time that the server names', async () => {
  const error = await refusal(429, { 'Retry-After': '4' })
  expect(error).toBeInstanceOf(ApiProblem)
  expect([0, 1, 2, 3].map((count) => isSentAgain(count, error))).toEqual([true, true, true, false])
  expect(pauseMs(0, error)).toBeGreaterThanOrEqual(4000)
  expect(pauseMs(0, error)).toBeLessThan(5000)
  expect(isSentAgainIfRefusedForNow(0, error)).toBe(true)
})

test.each([['3600'], [''], ['soon']])('a refusal that names no time or a long one is shown: %s', async (after) => {
  expect(isSentAgain(0, await refusal(429, { 'Retry-After': after }))).toBe(false)
})

test('other refusals are final, and failures are not', async () => {
  expect(isSentAgain(0, await refusal(404, {}))).toBe(false)
  const broken = await refusal(503, {})
  expect([0, 1, 2].map((count) => isSentAgain(count, broken))).toEqual([true, true, false])
  expect(isSentAgainIfRefusedForNow(0, broken)).toBe(false)
  expect(pauseMs(1, broken)).toBe(2000)
})
