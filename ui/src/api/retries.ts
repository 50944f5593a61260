/** Which queries are sent again, and when. */
import { ApiProblem } from './client'

const FAILURES = 2
/** As the Python client: so often, and only after a time that somebody waits for. */
const REFUSALS_FOR_NOW = 3
const LONGEST_S = 10

/** Returns whether the server has refused a request for now (429) and has said when to try again. */
export function isRefusedForNow(error: Error): boolean {
  return error instanceof ApiProblem && error.status === 429 && error.retryAfterS !== null && error.retryAfterS <= LONGEST_S
}

/** Returns whether a query that has failed so often before is sent again: not if it would be refused again. */
export function isSentAgain(count: number, error: Error): boolean {
  if (isRefusedForNow(error)) return count < REFUSALS_FOR_NOW
  return count < FAILURES && !(error instanceof ApiProblem && error.status >= 400 && error.status < 500)
}

/** As isSentAgain, for queries whose failures are shown at once. */
export function isSentAgainIfRefusedForNow(count: number, error: Error): boolean {
  return isRefusedForNow(error) && isSentAgain(count, error)
}

/** Returns the pause before that, in milliseconds. */
export function pauseMs(count: number, error: Error): number {
  const asked = isRefusedForNow(error) ? ((error as ApiProblem).retryAfterS ?? 0) * 1000 * (1 + Math.random() / 5) : 0
  return Math.max(asked, Math.min(1000 * 2 ** count, 30_000))
}
