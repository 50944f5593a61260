/**
 * Watches a run while the network, the API and a master go away, and looks as somebody who may not.
 *
 * Arguments: the address, what is there as JSON. tests/acceptance/ui/test_robust.py has the cluster
 * (and starts again what is killed), and judges.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { PATIENCE, chosen, launched, signedIn, watched } from './browser.mjs'

const [, , url, text] = process.argv
const { pids, gates, runs, reader, password, admin } = JSON.parse(text)
const found = { faults: [], facts: {} }
const { facts } = found
const open = (gate) => writeFileSync(gate, '') // the task behind it ends

const browser = await launched()
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' })
  const { page, faults } = await watched(context)
  page.setDefaultTimeout(PATIENCE)
  // The network of a shared worker is not the page's: the stream runs in the page, as it does where
  // there are no shared workers.
  await page.addInitScript(() => delete globalThis.SharedWorker)
  await signedIn(page, url, admin, password)

  // The network goes, and comes back: the page says since when it is old, and catches up.
  await page.goto(`${url}/runs/${runs[0]}`)
  await page.waitForSelector('.task-node[data-state=RUNNING]')
  await page.waitForSelector('[data-live=live]')
  await context.setOffline(true)
  await page.waitForSelector('[data-live=stale]')
  facts.stale = /Not live since \d\d:\d\d/.test(await page.locator('[data-live=stale]').innerText())
  facts.keeps = await page.locator('.task-node').count() // what was there stays
  open(gates[0])
  await context.setOffline(false)
  await page.waitForSelector('.page-head [data-state=SUCCEEDED]')
  await page.waitForSelector('[data-live=live]')

  // The API is killed while a run is watched. What happens meanwhile is seen when it is back.
  await page.goto(`${url}/runs/${runs[1]}`)
  await page.waitForSelector('.task-node[data-state=RUNNING]')
  await page.waitForSelector('[data-live=live]')
  process.kill(pids.api, 'SIGKILL')
  open(gates[1])
  await page.waitForSelector('[data-live=stale]')
  await page.waitForSelector('[data-live=live]', { timeout: PATIENCE })
  await page.waitForSelector('.page-head [data-state=SUCCEEDED]')
  facts.afterApi = true

  // The master that has the run is taken away; another one goes on, and the page with it.
  await page.goto(`${url}/runs/${runs[2]}`)
  await page.waitForSelector('.task-node[data-state=RUNNING]')
  process.kill(await masterOf(page), 'SIGKILL')
  open(gates[2])
  await page.waitForSelector('.page-head [data-state=SUCCEEDED]', { timeout: PATIENCE })
  facts.afterMaster = await page.locator('.task-node[data-state=SUCCEEDED]').count()
  found.faults.push(...faults)

  // A reader sees, and is told who can do more; nothing is sent.
  const other = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' })
  const seen = await watched(other)
  seen.page.setDefaultTimeout(PATIENCE)
  await signedIn(seen.page, url, reader, password)
  const sent = []
  seen.page.on('request', (request) => !['GET', 'HEAD'].includes(request.method()) && sent.push(`${request.method()} ${new URL(request.url()).pathname}`))
  await seen.page.goto(`${url}/runs/${runs[0]}`)
  await seen.page.waitForSelector('.task-node')
  facts.reader = await refused(seen.page, 'Rerun…')
  await seen.page.goto(`${url}/projects/default/settings`)
  facts.parameters = await refused(seen.page, 'Add a parameter')
  await seen.page.goto(`${url}/runs?project=default`)
  await seen.page.locator('[role=columnheader] input[type=checkbox]').check()
  facts.bulk = await refused(seen.page, 'Stop…')
  facts.nav = await seen.page.getByRole('link', { name: 'Admin' }).count()
  await seen.page.goto(`${url}/admin`)
  await seen.page.getByText('You don’t have access').waitFor()
  facts.sent = sent
  await chosen(seen.page, { language: 'zh' })
  await seen.page.goto(`${url}/projects/default/settings`)
  facts.chinese = await refused(seen.page, '添加参数')
  found.faults.push(...seen.faults)
} finally {
  for (const gate of gates) rmSync(gate, { force: true })
  await browser.close()
}
process.stdout.write(JSON.stringify(found))

/** Returns the process of the master that has the one run which is open. */
async function masterOf(page) {
  const { items } = await page.evaluate(async () => (await fetch('/api/v1/partitions?limit=500')).json())
  const { owner } = items.find((one) => one.open_instances)
  return Number(owner.split('-').at(-2)) // host-PID-random
}

/** Returns why a button does nothing, having pressed it; null: it does something. */
async function refused(page, name) {
  const button = page.locator('button', { hasText: name }).first()
  await button.waitFor()
  await page.waitForTimeout(300) // who one is has come
  if ((await button.getAttribute('aria-disabled')) !== 'true') return null
  await button.click({ force: true })
  return (await button.locator('.hidden').innerText()).replace(/^: /, '')
}
