/** Requests to the API: typed by its description, with errors as `ApiProblem`. */
import createClient from 'openapi-fetch'
import type { paths } from './schema.gen'
import type { Problem, ProblemField } from './types'

export const api = createClient<paths>({ baseUrl: '/', credentials: 'same-origin' })

/** An answer that is an error, in the API's own words. Status 0: nobody answered. */
export class ApiProblem extends Error {
  readonly status: number
  readonly kind: string
  readonly title: string
  readonly fields: readonly ProblemField[]
  /** Of a precondition that did not hold (412): how the thing is now, and its ETag. */
  readonly current: unknown
  readonly tag: string | null
  /** Of a refusal for now (429): when to try again, in seconds. */
  readonly retryAfterS: number | null

  constructor(status: number, problem: Partial<Problem> & { current?: unknown }, tag: string | null = null, retryAfter: string | null = null) {
    super(problem.detail ?? '')
    this.status = status
    this.kind = (problem.type ?? '').replace('/problems/', '')
    this.title = problem.title ?? ''
    this.fields = problem.errors ?? []
    this.current = problem.current ?? null
    this.tag = tag
    this.retryAfterS = retryAfter !== null && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : null
  }
}

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** Returns the content of an answer. Throws ApiProblem. */
export async function take<T>(asked: Promise<Answer<T>>): Promise<T> {
  return (await takeTagged(asked)).value
}

/** Something that can be changed, with the mark of its state (ETag) that a change has to bring; empty: it has none. */
export interface Tagged<T> {
  value: T
  etag: string
}

/** Returns the content of an answer and its ETag. Throws ApiProblem. */
export async function takeTagged<T>(asked: Promise<Answer<T>>): Promise<Tagged<T>> {
  const { data, error, response } = await answered(asked)
  const etag = response.headers.get('ETag')
  if (response.ok) return { value: data as T, etag: etag ?? '' }
  throw new ApiProblem(response.status, isProblem(error) ? error : {}, etag, response.headers.get('Retry-After'))
}

/** Returns the header of a change: of the state with this mark, or (none) of what is not there yet. */
export function onlyIf(etag: string | undefined): { 'if-match': string } | { 'if-none-match': string } {
  return etag ? { 'if-match': etag } : { 'if-none-match': '*' }
}

async function answered<T>(asked: Promise<Answer<T>>): Promise<Answer<T>> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiProblem(0, { type: '/problems/unreachable' })
  }
}

function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'detail' in value
}
