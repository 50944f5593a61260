import { expect, it } from 'vitest'
import type { AlertReceiver } from '@/api/types'
import { bodyOf, valuesOf, type Values } from './receiver'

const members = [{ name: 'Ada', targets: [{ channel: 'mail', to: ['ada@example.org'] }, { channel: 'chat', to: [] }] }]
const rotation = { start: '2026-11-02', at: '09:00', timezone: 'Europe/Berlin', weeks: 2 }
const stored = (spec: object): AlertReceiver => ({ name: 'on-call', version: 1, created_at: '', updated_at: '', spec: { members, description: '', ...spec } })

it('sends what it shows', () => {
  for (const spec of [{ rotation }, { rotation: null }]) {
    expect(bodyOf(valuesOf(stored(spec), '2026-11-21') as Values)).toEqual({ members, description: '', ...spec })
  }
})

it('keeps no rotation that is switched off', () => {
  const values = valuesOf(stored({ rotation }), '2026-11-21') as Values
  expect(bodyOf({ ...values, hasRotation: false }).rotation).toBeNull()
})

it('fills in what was left empty', () => {
  const given = { name: 'x', members: [{ targets: [{ channel: 'chat' }] }] } as unknown as Values
  expect(bodyOf(given)).toEqual({ description: '', members: [{ name: '', targets: [{ channel: 'chat', to: [] }] }], rotation: null })
})
