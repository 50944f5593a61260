import { describe, expect, it } from 'vitest'
import { affected, rerun, takes, type TaskNow } from './commands'

const tasks: TaskNow[] = [
  { name: 'fetch', state: 'SUCCEEDED', dependsOn: [] },
  { name: 'load', state: 'FAILED', dependsOn: ['fetch'] },
  { name: 'report', state: 'SKIPPED', dependsOn: ['load'] },
  { name: 'other', state: 'SKIPPED', dependsOn: ['fetch'] },
]

describe('affected', () => {
  it('recovers what went wrong, and names what was skipped behind it', () => {
    expect(affected('RECOVER', tasks)).toEqual({ direct: ['load'], behind: ['report'] })
  })
  it('stops what a worker has', () => {
    const now = [...tasks, { name: 'busy', state: 'RUNNING', dependsOn: [] }]
    expect(affected('STOP', now).direct).toEqual(['busy'])
  })
})

describe('rerun', () => {
  it('takes the chosen tasks alone, or with one side', () => {
    expect(rerun(tasks, ['load'], 'only')).toEqual({ direct: ['load'], behind: ['report'] })
    expect(rerun(tasks, ['load'], 'downstream').direct).toEqual(['load', 'report'])
    expect(rerun(tasks, ['load'], 'upstream').direct).toEqual(['fetch', 'load'])
  })
})

describe('takes', () => {
  it.each([
    ['PAUSE', 'RUNNING', true],
    ['PAUSE', 'FAILED', false],
    ['RESUME', 'STOPPED', true],
    ['STOP', 'STOPPING', false],
    ['RECOVER', 'FAILED', true],
    ['RECOVER', 'SUCCEEDED', false],
    ['RERUN', 'SUCCEEDED', true],
  ] as const)('%s while %s: %s', (command, state, expected) => {
    expect(takes(command, state)).toBe(expected)
  })
})
