/**
 * Does what people do on the pages of operating, settings and administration, in a real Chromium.
 *
 * Arguments: the address, what is there as JSON. tests/acceptance/ui/test_managing.py has the
 * cluster and judges what is written to standard output.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PATIENCE, chosen, findings, launched, overhang, signedIn, untranslated, visited, watched } from './browser.mjs'

const [, , url, text] = process.argv
const { project, admin, password, failed, good, workflow, folder } = JSON.parse(text)
const at = `${url}/projects/${project}`
const found = { faults: [], axe: {}, overhang: {}, facts: {}, raw: {} }
const { facts } = found
const PAGES = {
  runs: ['/runs', '[role=cell]'],
  backfills: ['/backfills', '[role=cell]'],
  plan: [`/projects/${project}/workflows/${workflow}?tab=backfills&plan=1`, '#b-from'],
  grid: [`/projects/${project}/workflows/${workflow}?tab=grid`, '.grid-cell [aria-hidden]'],
  calendar: [`/projects/${project}/workflows/${workflow}?tab=calendar`, '[data-kind=good], [data-kind=bad]'],
  tasks: [`/runs/${failed}?tab=tasks`, '[role=cell]'],
  replay: [`/runs/${failed}?tab=events`, '.replay-bar'],
  script: [`/runs/${failed}?task=bad&panel=script`, '.code'],
  details: [`/runs/${failed}?task=bad&panel=details`, '.ant-drawer .facts'],
  compare: [`/compare?a=${good}&b=${failed}&task=bad`, '.diff'],
  parameters: [`/projects/${project}/settings`, '[role=cell]'],
  secrets: [`/projects/${project}/settings?tab=secrets`, '[role=cell]'],
  members: [`/projects/${project}/settings?tab=members`, '.section-head'],
  calendars: [`/projects/${project}/settings?tab=calendars`, '.empty'],
  sources: [`/projects/${project}/data-sources?open=scratch`, '.ant-drawer form'],
  resources: [`/projects/${project}/resources`, '[role=cell]'],
  resource: [`/projects/${project}/resources?file=etl/job.sh&panel=diff`, '.diff'],
  users: ['/admin', '[role=cell]'],
  environments: ['/admin?tab=environments', '.section-head'],
  audit: ['/admin?tab=audit', '[role=cell]'],
  account: ['/account', '.facts'],
  tokens: ['/account?tab=tokens', '[role=cell]'],
  empty: ['/workflows?project=nothing', '.empty'],
}

const browser = await launched()
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' })
  const { page, faults } = await watched(context)
  page.setDefaultTimeout(PATIENCE)
  await signedIn(page, url, admin, password)

  // Many runs at once: the preview says what each would do, the results what each did.
  await page.goto(`${url}/runs?workflow=${workflow}&project=${project}`)
  await page.locator('[role=columnheader] input[type=checkbox]').check()
  await page.getByRole('toolbar').getByRole('button', { name: /^Recover/ }).click()
  facts.bulkWould = Number(await page.locator('[data-will]').getAttribute('data-will'))
  await page.locator('.bulk').getByRole('button', { name: /^Recover 1/ }).click()
  await page.waitForSelector('[data-outcome="1/1/0"]') // one carried out, one refused
  facts.bulkRefusal = await page.locator('.bulk [role=cell]', { hasText: 'cannot recover' }).count()
  await page.getByRole('button', { name: 'Close' }).last().click()

  // Five days are planned, run, and followed without a reload.
  await page.goto(`${at}/workflows/${workflow}?tab=backfills`)
  await page.getByRole('button', { name: 'Backfill…' }).first().click()
  await page.fill('#b-from', '2026-03-01')
  await page.fill('#b-to', '2026-03-05')
  await page.locator('#b-by').click()
  await page.locator('.ant-select-item-option', { hasText: 'day (midnight)' }).click()
  await page.getByRole('button', { name: 'Show the plan' }).click()
  facts.planned = Number(await page.locator('[data-plan]').getAttribute('data-plan'))
  await page.getByRole('button', { name: 'Start 5 runs' }).click()
  await page.waitForURL('**/backfills/*')
  await page.locator('.page-head [data-state=SUCCEEDED], .page-head [data-state=FAILED]').waitFor({ timeout: PATIENCE })
  await page.waitForFunction(() => document.querySelectorAll('[role=cell] [data-state=SUCCEEDED]').length === 5)
  facts.backfilled = await page.locator('[role=cell] [data-state=SUCCEEDED]').count()

  // What an attempt used, and why it failed: above all tabs what the reason does not say.
  await page.goto(`${url}/runs/${failed}?task=bad&panel=details`)
  facts.errorLine = await page.locator('.ant-drawer').getByLabel('Error line').textContent()
  const details = await page.locator('.ant-drawer .facts').innerText()
  facts.used = [/CPU time\s+\d+\.\d s/, /Peak memory of one process\s+\d+(\.\d)? MB/, /Fingerprint\s+[0-9a-f]{16}/].map((one) => one.test(details))

  // Runs by tasks: the newest at the right. What failed leads to its log; the keyboard goes everywhere.
  await page.goto(`${at}/workflows/${workflow}?tab=grid`)
  const cells = (task) => page.locator(`[role=row]:has([role=rowheader]:has-text("${task}")) .grid-cell`)
  await cells('bad').last().waitFor()
  const states = await cells('bad').evaluateAll((all) => all.map((one) => one.getAttribute('data-state')))
  facts.grid = [states.includes('FAILED'), states.includes('SUCCEEDED'), await page.locator('.grid-run.new-version').count() > 0]
  const firstRun = await page.locator('.grid-run').first().getAttribute('data-run')
  await page.getByRole('gridcell', { name: `bad · #${failed} · Failed` }).click()
  await page.waitForURL((to) => to.pathname === `/runs/${failed}` && to.searchParams.get('task') === 'bad')
  await page.goBack()
  await page.getByRole('grid').press('Home')
  await page.getByRole('grid').press('Enter')
  await page.waitForURL(`**/runs/${firstRun}`)

  // A year of days: one that is chosen shows its runs, and its backfill has its dates.
  await page.goto(`${at}/workflows/${workflow}?tab=calendar&year=2026&day=2026-03-03`)
  await page.locator('[data-chosen="2026-03-03"]').waitFor()
  await page.locator('.panel [role=cell]').first().waitFor()
  facts.days = await page.locator('[data-date^="2026-03-0"][data-kind=good]').count()
  await page.locator('[data-date="2026-03-07"]').click()
  await page.getByText('No run for this day.').waitFor()
  await page.getByRole('button', { name: 'Backfill this day…' }).click()
  facts.dayFilledIn = [await page.inputValue('#b-from'), await page.inputValue('#b-to')]

  // A schedule is held back, and lets go.
  await page.goto(`${at}/workflows/${workflow}?tab=schedules`)
  await page.getByRole('button', { name: 'Pause…' }).click()
  await page.locator('.ant-modal-confirm').getByRole('button', { name: 'Pause' }).click()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Pause…' }).waitFor()
  facts.schedule = 'paused and resumed'

  // A parameter is made, changed, and an old form does not overwrite what is newer.
  await page.goto(`${at}/settings`)
  await page.getByRole('button', { name: 'Add a parameter' }).click()
  await page.getByLabel('Name').fill('bucket')
  await page.getByLabel('Value').fill('one')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('cell', { name: 'bucket', exact: true }).click()
  await page.locator('.ant-drawer').getByLabel('Value').fill('two')
  await page.evaluate(async (path) => {
    const now = await fetch(path)
    await fetch(path, { method: 'PUT', headers: { 'if-match': now.headers.get('etag'), 'content-type': 'application/json' }, body: JSON.stringify({ value: 'newer' }) })
  }, `/api/v1/projects/${project}/parameters/bucket`)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Changed by another user').waitFor()
  await page.keyboard.press('Escape')
  facts.parameter = await page.evaluate(async (path) => (await (await fetch(path)).json()).value, `/api/v1/projects/${project}/parameters/bucket`)

  // A secret is set, and is nowhere on the page.
  await page.goto(`${at}/settings?tab=secrets`)
  await page.getByRole('button', { name: 'Add a secret' }).click()
  await page.getByLabel('Name').fill('db_password')
  await page.getByLabel('Value').fill('tr0ut-and-salmon')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('cell', { name: 'db_password', exact: true }).waitFor()
  facts.secretIsShown = (await page.content()).includes('tr0ut-and-salmon')

  // A data source from the fields of its kind; a worker tries it.
  await page.goto(`${at}/data-sources?open=new`)
  await page.locator('#name').fill('scratch')
  await page.locator('#kind').click()
  await page.locator('.ant-select-item-option', { hasText: 'SQLite' }).click()
  await page.locator('#database').fill(':memory:')
  facts.hasHost = await page.locator('#host').count()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'Test… scratch' }).click()
  await page.getByRole('button', { name: 'Test the connection' }).click()
  facts.probe = await page.locator('[data-probe]').getAttribute('data-probe', { timeout: PATIENCE })

  // Files: uploaded, edited, compared.
  const file = join(folder, 'job.sh')
  writeFileSync(file, 'echo one\necho two\n')
  await page.goto(`${at}/resources?folder=etl`)
  await page.getByRole('button', { name: 'Upload files…' }).first().click()
  await page.setInputFiles('[data-upload]', file)
  await page.locator('.ant-modal').getByRole('button', { name: 'Upload files' }).click()
  await page.waitForSelector('[data-outcome=ok]')
  await page.getByRole('button', { name: 'Close' }).last().click()
  await page.getByRole('button', { name: 'job.sh', exact: true }).click()
  await page.getByRole('button', { name: 'Edit text' }).click()
  await page.locator('textarea.file-text').fill('echo one\necho three\n')
  await page.getByRole('button', { name: 'Save as version 2' }).click()
  await page.getByRole('tab', { name: 'Changes' }).click()
  facts.changedLines = Number(await page.locator('.diff').getAttribute('data-changes'))

  // A token is shown once.
  await page.goto(`${url}/account?tab=tokens`)
  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByLabel('Purpose').fill('nightly import')
  await page.getByRole('button', { name: 'Create token' }).click()
  const token = await page.locator('textarea[data-once]').inputValue()
  facts.token = token.slice(0, 10)
  await page.getByRole('button', { name: 'Close' }).last().click()
  await page.getByRole('cell', { name: 'nightly import', exact: true }).waitFor()
  facts.tokenIsShown = (await page.content()).includes(token)
  await page.goto(`${url}/account?tab=sessions`)
  await page.getByText('this browser').waitFor()

  // The chain of the audit, computed in the browser.
  await page.goto(`${url}/admin?tab=audit`)
  await page.getByRole('button', { name: 'Verify the chain' }).click()
  facts.chain = await page.locator('[data-verdict]').getAttribute('data-verdict')

  // More rows come when the last ones are seen, and only those that are seen are in the page.
  await page.waitForSelector('[data-count="100"]')
  await page.locator('.table').evaluate((table) => table.scrollTo(0, table.scrollHeight))
  await page.waitForFunction(() => Number(document.querySelector('[data-count]').dataset.count) > 100)
  facts.mountsFew = (await page.locator('[role=row]').count()) < 80

  // A run as of any moment of it; a word that is only at the beginning of a long log.
  await page.goto(`${url}/runs/${good}?tab=events`)
  const slider = page.locator('.replay-bar input[type=range]')
  await page.waitForTimeout(1200) // all events have come
  await slider.press('Home')
  facts.atFirst = await page.locator('.task-node[data-state=SUCCEEDED]').count()
  await slider.press('End')
  facts.atLast = await page.locator('.task-node[data-state=SUCCEEDED]').count()
  await page.goto(`${url}/runs/${good}?task=long`)
  await page.getByPlaceholder('Search the log').fill('needle')
  await page.getByPlaceholder('Search the log').press('Enter')
  await page.locator('.log-line.hit', { hasText: 'needle' }).waitFor()
  facts.hits = Number(await page.locator('[data-hits]').getAttribute('data-hits'))

  // Nothing serious for axe on any page in light and dark; nothing wider than 360 px; no text
  // that is in no language.
  await chosen(page, { theme: 'system' })
  await visit(page, async (name) => {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await page.waitForSelector(`html[data-theme=${colorScheme}]`)
      await page.waitForTimeout(200) // colours go over into each other
      found.axe[`${name} ${colorScheme}`] = await findings(page)
    }
    await page.setViewportSize({ width: 360, height: 740 })
    await page.waitForTimeout(100)
    found.overhang[name] = await overhang(page)
    await page.setViewportSize({ width: 1280, height: 800 })
  })
  found.raw = await untranslated(page, url, PAGES)

  // Where nothing is, one click runs something.
  await chosen(page, {})
  await page.goto(`${url}/workflows?project=nothing`)
  await page.getByRole('button', { name: 'Publish and run the example' }).click()
  await page.waitForURL('**/runs/*')
  await page.waitForSelector('.page-head [data-state=SUCCEEDED]', { timeout: PATIENCE })
  facts.example = await page.locator('.task-node').count()
  found.faults = faults
} catch (error) {
  await browser.contexts()[0]?.pages()[0]?.screenshot({ path: join(folder, 'failed.png') }).catch(() => undefined)
  throw error
} finally {
  await browser.close()
}
process.stdout.write(JSON.stringify(found))

async function visit(page, look) {
  await visited(page, url, PAGES, look)
}
