import { describe, expect, it } from 'vitest'
import { parametersIn, requestOf, START } from './plan'

describe('parametersIn', () => {
  it('takes everything behind the first = as the value', () => {
    expect(parametersIn('day=$[yyyy-MM-dd]\n\n x =a=b ')).toEqual({ day: '$[yyyy-MM-dd]', x: 'a=b ' })
  })
  it('names the line that is none', () => expect(parametersIn('a=1\n\nnonsense')).toBe(3))
})

it('leaves to the server what was not chosen', () => {
  const sent = requestOf('p', 'w', { ...START, from: '2026-01-01', to: '2026-01-03' }, {})
  expect(Object.keys(sent).sort()).toEqual(['downstream', 'from', 'order', 'parallel', 'project', 'reprocess', 'to', 'workflow'])
  expect(requestOf('p', 'w', { ...START, only: 'failed', tasks: ['a'], mode: 'downstream' }, { x: '1' })).toMatchObject({ only: 'failed', tasks: ['a'], mode: 'downstream', parameters: { x: '1' } })
})
