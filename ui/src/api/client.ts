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

  constructor(status: number, problem: Partial<Problem> & { current?: unknown }, tag: string | null = null) {
    super(problem.detail ?? '')
    this.status = status
    this.kind = (problem.type ?? '').replace('/problems/', '')
    this.title = problem.title ?? ''
    this.fields = problem.errors ?? []
    this.current = problem.current ?? null
    this.tag = tag
  }
}

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** Returns the content of an answer. Throws ApiProblem. */
export async function take<T>(asked: Promise<Answer<T>>): Promise<T> {
  return (await takeTagged(asked)).data
}

/** Returns the content of an answer with its ETag. Throws ApiProblem. */
export async function takeTagged<T>(asked: Promise<Answer<T>>): Promise<{ data: T; tag: string | null }> {
  const { data, error, response } = await answered(asked)
  const tag = response.headers.get('ETag')
  if (response.ok) return { data: data as T, tag }
  throw new ApiProblem(response.status, isProblem(error) ? error : {}, tag)
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
