import { describe, expect, it } from 'vitest'
import { untilOf } from './until'

const NOW = Date.parse('2026-11-21T23:30:00Z')

describe('untilOf', () => {
  it('ends after some hours', () => {
    expect(untilOf('1h', '', NOW, 'UTC')).toBe('2026-11-22T00:30:00.000Z')
    expect(untilOf('4h', '', NOW, 'Asia/Shanghai')).toBe('2026-11-22T03:30:00.000Z')
  })
  it('ends on the morning after the day that it is in the zone', () => {
    expect(untilOf('morning', '', NOW, 'UTC')).toBe('2026-11-22T08:00:00Z')
    expect(untilOf('morning', '', NOW, 'Europe/Berlin')).toBe('2026-11-23T07:00:00Z') // there it is the 22nd by now
    expect(untilOf('morning', '', Date.parse('2026-10-24T12:00:00Z'), 'Europe/Berlin')).toBe('2026-10-25T07:00:00Z') // clocks change in the night
    expect(untilOf('morning', '', Date.parse('2026-12-31T12:00:00Z'), 'UTC')).toBe('2027-01-01T08:00:00Z')
  })
  it('takes a time of the zone, and nothing that is none', () => {
    expect(untilOf('own', '2026-11-22T06:00', NOW, 'Europe/Berlin')).toBe('2026-11-22T05:00:00Z')
    expect(untilOf('own', '', NOW, 'UTC')).toBeNull()
    expect(untilOf('own', 'soon', NOW, 'UTC')).toBeNull()
  })
})
