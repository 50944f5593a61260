import { describe, expect, it } from 'vitest'
import { bytesText, clockText, durationText, instantOf, timeText } from './format'

describe('timeText', () => {
  it('always names the zone', () => {
    expect(timeText('2026-11-21T05:00:00Z', 'Europe/Berlin', 'en')).toBe('21 Nov 2026, 06:00:00 CET')
    expect(timeText('2026-11-21T05:00:00Z', 'UTC', 'en')).toContain('UTC')
    expect(timeText('2026-11-21T05:00:00Z', 'Asia/Shanghai', 'zh')).toContain('GMT+8')
  })
  it('falls back to UTC, saying so, for a zone that this browser does not know', () => {
    expect(timeText('2026-11-21T05:00:00Z', 'Mars/Base', 'en')).toContain('05:00:00 UTC')
  })
  it('writes midnight as 00', () => {
    expect(clockText('2026-11-21T00:00:00Z', 'UTC', 'en')).toBe('00:00')
    expect(clockText('2026-11-21T00:00:07Z', 'UTC', 'en', true)).toBe('00:00:07')
  })
})

describe('durationText', () => {
  it.each([
    [0, '0.0 s'],
    [1234, '1.2 s'],
    [59_600, '1 min 00 s'],
    [3_840_000, '1 h 04 min'],
    [200_000_000, '2 d 07 h'],
  ])('%i ms is %s', (ms, text) => expect(durationText(ms)).toBe(text))
})

describe('bytesText', () => {
  it.each([
    [999, '999 B'],
    [12_400_000, '12.4 MB'],
    [1_000_000_000, '1.0 GB'],
  ])('%i is %s', (bytes, text) => expect(bytesText(bytes)).toBe(text))
})

describe('instantOf', () => {
  it('reads local times in their zone, on both sides of a change of clocks', () => {
    expect(instantOf('2026-11-21T06:00', 'Europe/Berlin')).toBe('2026-11-21T05:00:00Z')
    expect(instantOf('2026-07-21T06:00', 'Europe/Berlin')).toBe('2026-07-21T04:00:00Z')
    expect(instantOf('2026-03-29T03:30', 'Europe/Berlin')).toBe('2026-03-29T01:30:00Z')
    expect(instantOf('2026-03-29T01:30', 'Europe/Berlin')).toBe('2026-03-29T00:30:00Z')
  })
  it('refuses what is not a time', () => expect(instantOf('soon', 'UTC')).toBeNull())
})
