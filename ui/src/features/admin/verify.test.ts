import { expect, it } from 'vitest'
import { canonical, hashOf, linksIn, verifyChain } from './verify'

it('writes JSON as the server does', () => {
  // python: json.dumps(…, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
  const [link] = linksIn('[{"position": 1, "hash": "", "previous": "", "entry": {"b": [1.0, true, null], "a": "Zoë 日 😀 \\u007f \\" / \\n", "😀": 1, "\uffff": 2}}]')
  expect(canonical(link?.entry)).toBe('{"a":"Zo\\u00eb \\u65e5 \\ud83d\\ude00 \x7f \\" / \\n","b":[1.0,true,null],"\\uffff":2,"\\ud83d\\ude00":1}')
})

async function chain(length: number, change: (links: { position: number; hash: string; previous: string; entry: unknown }[]) => void = () => undefined) {
  const links: { position: number; hash: string; previous: string; entry: unknown }[] = []
  let previous = '0'.repeat(64)
  for (let position = 1; position <= length; position += 1) {
    const entry = { id: `entry ${position}` }
    const hash = await hashOf(previous, entry)
    links.push({ position, hash, previous, entry })
    previous = hash
  }
  change(links)
  return (after: number, limit: number) => Promise.resolve(JSON.stringify(links.filter((link) => link.position > after).slice(0, limit)))
}

it('finds a chain whole', async () => {
  expect(await verifyChain(await chain(700), () => undefined)).toEqual({ count: 700, broken: null })
})

it('finds what was changed, taken out, or put in', async () => {
  const changed = await chain(5, (links) => void (links[2] = { ...(links[2] as (typeof links)[0]), entry: { id: 'other' } }))
  expect(await verifyChain(changed, () => undefined)).toEqual({ count: 2, broken: 3 })
  const removed = await chain(5, (links) => void links.splice(2, 1))
  expect(await verifyChain(removed, () => undefined)).toEqual({ count: 2, broken: 4 })
  const emptied = await chain(5, (links) => void (links[3] = { ...(links[3] as (typeof links)[0]), entry: null }))
  expect(await verifyChain(emptied, () => undefined)).toEqual({ count: 3, broken: 4 })
})

it('begins where pruning has left off', async () => {
  expect(await verifyChain(await chain(5, (links) => void links.splice(0, 2)), () => undefined)).toEqual({ count: 3, broken: null })
})
