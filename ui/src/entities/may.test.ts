import { expect, it } from 'vitest'
import type { Me } from '@/api/types'
import { may } from './marks'

const who = (more: Partial<Me>): Me => ({
  name: 'ada',
  kind: 'USER',
  is_admin: false,
  must_change_password: false,
  has_password: true,
  issuer: null,
  roles: [],
  permissions: null,
  projects: null,
  ...more,
})

it('goes by the role in the project', () => {
  const runner = who({ roles: [{ project: 'p', role: 'runner' }] })
  expect(may(runner, 'run.operate', 'p')).toBe(true)
  expect(may(runner, 'project.edit', 'p')).toBe(false)
  expect(may(runner, 'run.operate', 'other')).toBe(false)
})

it('lets administrators do all, within the limits of a token', () => {
  expect(may(who({ is_admin: true }), 'project.edit', 'p')).toBe(true)
  expect(may(who({ is_admin: true, permissions: ['project.read'] }), 'project.edit', 'p')).toBe(false)
  expect(may(who({ is_admin: true, projects: ['q'] }), 'run.operate', 'p')).toBe(false)
})
