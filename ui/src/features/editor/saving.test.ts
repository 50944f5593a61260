import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiProblem } from '@/api/client'
import type { Draft } from '@/api/types'
import { discardDraft, saveDraft } from './queries'
import { Saving, type Opened } from './saving'

vi.mock('./queries', () => ({
  loadDraft: vi.fn(),
  publishDraft: vi.fn(),
  saveDraft: vi.fn(),
  discardDraft: vi.fn(),
  versionText: () => Promise.resolve('published'),
}))

const DRAFT: Opened = { text: 'mine', savedText: 'mine', baseVersion: 2, tag: '"1"', isRestored: false, clash: null }
const save = vi.mocked(saveDraft)
const remove = vi.mocked(discardDraft)

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => undefined, removeItem: () => undefined })
})
afterEach(() => {
  vi.useRealTimers()
  vi.resetAllMocks()
})

describe('discarding a draft', () => {
  it('leaves nothing behind that is saved again', async () => {
    save.mockRejectedValue(new ApiProblem(0, {}))
    remove.mockResolvedValue(undefined)
    const taken: string[] = []
    const saving = new Saving('ada', 'default', 'daily', DRAFT, (text) => taken.push(text))
    saving.changed('typed')
    await vi.advanceTimersByTimeAsync(1_100)
    expect(saving.info.state).toBe('offline')
    await saving.discard(2, '')
    expect([saving.info.state, saving.info.hasDraft, taken]).toEqual(['published', false, ['published']])
    const sent = save.mock.calls.length
    await vi.advanceTimersByTimeAsync(60_000)
    expect(save.mock.calls.length).toBe(sent)
  })

  it('waits for what is being saved, and for no other try of it', async () => {
    let fail: (error: Error) => void = () => undefined
    save.mockReturnValue(new Promise((_, reject) => (fail = reject)))
    remove.mockResolvedValue(undefined)
    const saving = new Saving('ada', 'default', 'daily', DRAFT, () => undefined)
    saving.changed('typed')
    await vi.advanceTimersByTimeAsync(1_100)
    const done = saving.discard(2, '')
    await vi.advanceTimersByTimeAsync(0)
    expect(remove).not.toHaveBeenCalled()
    fail(new ApiProblem(503, {}))
    await done
    expect(saving.info.state).toBe('published')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(save).toHaveBeenCalledTimes(1)
  })

  it('keeps what another window has saved meanwhile, and says so', async () => {
    const theirs = { text: 'mine\nand theirs', base_version: 2, newest_version: 2 } as Draft
    remove.mockRejectedValue(new ApiProblem(412, { current: theirs }, '"2"'))
    save.mockResolvedValue({ value: theirs, etag: '"3"' })
    const saving = new Saving('ada', 'default', 'daily', DRAFT, () => undefined)
    await expect(saving.discard(2, '')).rejects.toMatchObject({ status: 412 })
    expect(saving.info.hasDraft).toBe(true)
  })

  it('fails with the draft as it was', async () => {
    remove.mockRejectedValue(new ApiProblem(503, { detail: 'the database is busy' }))
    const saving = new Saving('ada', 'default', 'daily', DRAFT, () => undefined)
    await expect(saving.discard(2, '')).rejects.toMatchObject({ status: 503 })
    expect(saving.info.state).toBe('saved')
  })
})
