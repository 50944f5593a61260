/**
 * Looks at Insight in a real Chromium: before there are results, after jobs have made them, and with
 * weeks of them.
 *
 * Arguments: the address, what is there as JSON; its `part` says what is looked at.
 * tests/acceptance/ui/test_insight.py has the cluster and judges what is written to standard output.
 */
import { join } from 'node:path'
import { PATIENCE, chosen, findings, launched, overhang, signedIn, untranslated, visited, watched } from './browser.mjs'

const [, , url, text] = process.argv
const there = JSON.parse(text)
const found = { faults: [], axe: {}, overhang: {}, facts: {}, raw: {} }
const { facts } = found
const WIDE = { width: 1280, height: 800 }

const browser = await launched()
try {
  const context = await browser.newContext({ viewport: WIDE, locale: 'en-GB', timezoneId: 'Europe/Berlin' })
  const { page, faults } = await watched(context)
  page.setDefaultTimeout(PATIENCE)
  await signedIn(page, url, there.admin, there.password)
  await { none, made, weeks }[there.part](page)
  found.faults = faults
} catch (error) {
  await browser.contexts()[0]?.pages()[0]?.screenshot({ path: join(there.folder, `failed-${there.part}.png`) }).catch(() => undefined)
  throw error
} finally {
  await browser.close()
}
process.stdout.write(JSON.stringify(found))

/** No job has run: the page says what to do. */
async function none(page) {
  await page.getByRole('link', { name: 'Insight' }).click()
  await page.waitForURL('**/insight')
  await page.locator('.insight-command').waitFor()
  facts.command = await page.locator('.insight-command code').textContent()
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('button', { name: 'Copy' }).click()
  await page.getByText('Copied').waitFor()
  facts.copied = await page.evaluate(() => navigator.clipboard.readText())
  found.axe.none = await findings(page)
  await page.goto(`${url}/runs/${there.good}?tab=baseline`)
  await page.locator('.empty .code').waitFor()
  facts.baseline = await page.locator('.empty .code').textContent()
  await page.goto(`${url}/runs/${there.good}`)
  await page.waitForSelector('.run-line')
  facts.eta = await page.locator('[data-eta]').count()
}

/** Runs were exported, jobs have made results of them, a master has loaded these. */
async function made(page) {
  await page.goto(`${url}/insight?project=default`)
  await page.waitForSelector('.plot-bar')
  facts.until = await page.locator('[data-until]').getAttribute('data-until')
  facts.tiles = await page.locator('.tile').evaluateAll((all) => all.slice(0, 2).map((one) => [one.querySelector('.tile-label').textContent, one.querySelector('.tile-value').textContent]))
  await page.locator('.plot-table summary').first().click()
  facts.lastDay = await page.locator('.numbers').first().locator('tbody tr').last().locator('td').allTextContents()

  // The cause of the failures, and from there the log of an attempt.
  await page.getByRole('tab', { name: 'Failures' }).click()
  const cause = page.locator('.cause')
  await cause.first().waitFor()
  facts.causes = await cause.evaluateAll((all) => all.map((one) => [one.querySelector('.cause-sample').textContent, one.querySelector('.tile-value').textContent]))
  await cause.first().getByRole('button', { name: 'Attempts' }).click()
  await page.locator('.ant-drawer [role=cell] a').first().waitFor()
  facts.attempts = await page.locator('.ant-drawer [role=cell] a').count()
  await page.goBack() // closes what has opened over the page
  await page.locator('.ant-drawer-open').waitFor({ state: 'detached' })
  await cause.first().getByRole('button', { name: 'Attempts' }).click()
  await page.locator('.ant-drawer [role=cell] a').first().click()
  await page.waitForURL('**/runs/*task=b*')
  await page.locator('.log-line', { hasText: 'boom' }).first().waitFor()

  // A workflow by its own page, and its tasks.
  await page.goto(`${url}/projects/default/workflows/good`)
  await page.locator('.page-actions').getByRole('link', { name: 'Insight' }).click()
  await page.waitForSelector('[role=cell] .share-bar.critical')
  facts.tasks = await page.locator('[role=row] .mono.strong').allTextContents()

  // Three runs are too few to call anything usual.
  await page.goto(`${url}/runs/${there.good}?tab=baseline`)
  await page.waitForSelector('.baseline-head')
  facts.verdict = await page.locator('.baseline-head').getAttribute('data-verdict')
  facts.compared = await page.locator('.baseline-took').count()
}

/** Weeks of results, and runs that are open: every page, in all its looks. */
async function weeks(page) {
  const { live, slow, ended } = there
  // The head of a run that goes on as usual, of one that does not, of one that has ended.
  await page.goto(`${url}/runs/${live}`)
  await page.locator('[data-eta]', { hasText: 'Expected to end at' }).waitFor()
  const eta = await page.locator('[data-eta]').getAttribute('data-eta')
  facts.eta = Math.round((Date.parse(eta) - Date.now()) / 60_000) // minutes from now
  await page.locator('[data-eta]', { hasText: 'as usual' }).waitFor()
  await page.goto(`${url}/runs/${slow}`)
  await page.locator('[data-eta].bad-text', { hasText: 'slower than usual since' }).waitFor()
  await page.goto(`${url}/runs/${ended}?tab=baseline`)
  await page.waitForSelector('.baseline-bars')
  facts.verdict = await page.locator('.baseline-head').getAttribute('data-verdict')
  facts.sentence = (await page.locator('.baseline-sentence').textContent()).replace(/\d+(\.\d+)? (s|ms)/g, '# s')
  facts.first = await page.locator('[role=cell] .mono.strong').first().textContent()
  facts.headOfEnded = await page.locator('[data-eta]').count()

  // Today: up to when a run should go on, and what takes longer than usual.
  await page.goto(`${url}/today`)
  await page.waitForSelector('.lane-until')
  facts.until = await page.locator('.lane-until').count()
  // It is slow from a moment on, which the page may have come before.
  await page.locator('.side-list .slow', { hasText: 'slower than usual since' }).first().waitFor()
  await page.locator('.lane-bar.slow').first().waitFor()
  facts.slow = await page.locator('.lane-bar.slow').count()
  found.axe.today = await findings(page)

  // The view is in the address: days, tab, order, workflow; the way back leads to the one before.
  await page.goto(`${url}/insight`)
  await page.waitForSelector('.plot-bar')
  await page.getByText('7 days', { exact: true }).click()
  await page.waitForURL('**days=7**')
  facts.days = await page.locator('.plot-shade').count() > 0 && (await page.locator('.plot-box').first().getAttribute('aria-valuemax'))
  await page.getByRole('button', { name: 'Days…' }).click()
  await page.fill('#i-from', there.from)
  await page.fill('#i-to', there.to)
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await page.waitForURL(`**from=${there.from}**`)
  facts.chosen = await page.locator('.plot-box').first().getAttribute('aria-valuemax')
  await page.goto(`${url}/insight?tab=slower`)
  await page.waitForSelector('[role=cell] .insight-name')
  facts.slowest = await page.locator('[role=cell] .insight-name').first().textContent()
  await page.locator('[role=cell] .insight-name').first().click()
  await page.waitForURL('**workflow=flights%2Fnightly**')
  await page.waitForSelector('.plot-line.second')
  const task = page.locator('[role=row]').filter({ hasText: 'load_us' })
  await task.waitFor()
  facts.task = await task.locator('.difference-bar.longer').count()
  await page.goBack()
  await page.waitForURL((address) => !address.search.includes('workflow='))

  // With the keyboard alone: what the cursor says, and its table.
  await page.goto(`${url}/insight`)
  await page.waitForSelector('.plot-bar')
  const plot = page.locator('.plot-box').first()
  await plot.focus()
  await page.keyboard.press('End')
  await page.keyboard.press('ArrowLeft')
  facts.cursor = [Number(await plot.getAttribute('aria-valuemax')) - Number(await plot.getAttribute('aria-valuenow')), /Succeeded \d+/.test(await plot.getAttribute('aria-valuetext')), await page.locator('.plot-said').isVisible()]
  await page.goto(`${url}/insight?tab=load`)
  await page.waitForSelector('.heat-cell')
  await page.locator('.heat-box').focus()
  for (const key of ['ArrowDown', 'ArrowRight', 'ArrowDown']) await page.keyboard.press(key)
  facts.hour = (await page.locator('.heat-said').textContent()).slice(0, 20)

  await page.goto(`${url}/insight?tab=cost&by=label`)
  await page.getByRole('cell', { name: 'team=data' }).waitFor()
  await page.goto(`${url}/insight?tab=cost&by=task`)
  await page.getByText('Choose a project', { exact: true }).waitFor()
  await page.goto(`${url}/insight?tab=cost&by=task&project=flights`)
  await page.locator('[role=cell]', { hasText: 'load_us' }).first().waitFor()

  const one = 'workflow=flights%2Fnightly'
  const pages = {
    overview: ['/insight', '.plot-bar'],
    slower: ['/insight?tab=slower', '[role=cell] .spark'],
    tasks: [`/insight?tab=slower&${one}`, '[role=cell] .spark'],
    waits: ['/insight?tab=waits', '[role=cell] .share-track'],
    'waits-one': [`/insight?tab=waits&${one}`, '[role=cell] .share-track'],
    failures: ['/insight?tab=failures', '.cause'],
    attempts: ['/insight?tab=failures&cause=e3b7509d21c6f84a', '.ant-drawer .empty, .ant-drawer [role=cell]'],
    lateness: ['/insight?tab=lateness', '[role=cell] .share-track'],
    'lateness-one': [`/insight?tab=lateness&${one}`, '[role=cell] .share-track'],
    load: ['/insight?tab=load', '.heat-cell'],
    cost: ['/insight?tab=cost', '[role=cell] .share-track'],
    schedules: ['/insight?tab=schedules', '.plot-bar'],
    baseline: [`/runs/${ended}?tab=baseline`, '.baseline-bars'],
    live: [`/runs/${live}`, '[data-eta]'],
  }
  await chosen(page, { theme: 'system' })
  await visited(page, url, pages, async (name) => {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await page.waitForSelector(`html[data-theme=${colorScheme}]`)
      await page.waitForTimeout(200) // colours go over into each other
      found.axe[`${name} ${colorScheme}`] = await findings(page)
    }
    await page.setViewportSize({ width: 360, height: 740 })
    await page.waitForSelector('.shell.narrow')
    await page.waitForTimeout(200) // charts measure what they have
    found.overhang[name] = await overhang(page)
    await page.setViewportSize(WIDE)
    await page.waitForSelector('.shell:not(.narrow)')
  })
  found.raw = await untranslated(page, url, pages)
  await chosen(page, { language: 'zh' })
  await page.goto(`${url}/insight`)
  await page.waitForSelector('.plot-bar')
  facts.chinese = [await page.locator('h1').textContent(), await page.locator('.tile-label').first().textContent()]
  await chosen(page, {})

  // Whoever sees one project alone sees its numbers, and why the cluster's are not shown.
  const other = await browser.newContext({ viewport: WIDE, locale: 'en-GB' })
  const looker = await other.newPage()
  looker.setDefaultTimeout(PATIENCE)
  await signedIn(looker, url, there.reader, there.readerPassword)
  await looker.goto(`${url}/insight?tab=slower`)
  await looker.locator('[role=cell] .insight-name').first().waitFor()
  facts.seen = [...new Set(await looker.locator('[role=cell] .insight-name').allTextContents().then((names) => names.map((name) => name.split('/')[0])))]
  await looker.goto(`${url}/insight?tab=load`)
  await looker.getByText('Load is visible only with access to the cluster').waitFor()
  await looker.goto(`${url}/insight?tab=schedules`)
  await looker.getByText('Only administrators can see it').waitFor()
  facts.moves = await looker.locator('[role=cell] .insight-name').allTextContents()
}
