/**
 * Sets up alerts, has one made, and does with it what people do, in a real Chromium.
 *
 * Arguments: the address, what is there as JSON. tests/acceptance/ui/test_alerting.py has the
 * cluster and the server that takes messages, and judges what is written to standard output.
 */
import { join } from 'node:path'
import { PATIENCE, chosen, findings, launched, overhang, signedIn, untranslated, visited, watched } from './browser.mjs'

const [, , url, text] = process.argv
const { project, workflow, sink, admin, password, reader, readerPassword, folder } = JSON.parse(text)
const at = (rest = '') => `/alerts?project=${project}${rest}`
const found = { faults: [], axe: {}, overhang: {}, facts: {}, raw: {} }
const { facts } = found

const browser = await launched()
try {
  // Without motion: on a busy machine a list that is still moving takes a click for another entry, or closes.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB', reducedMotion: 'reduce' })
  const { page, faults } = await watched(context)
  page.setDefaultTimeout(PATIENCE)
  await signedIn(page, url, admin, password)
  const form = page.locator('.ant-drawer form').last()
  const save = async () => {
    await form.getByRole('button', { name: 'Save' }).click()
    await form.waitFor({ state: 'detached' })
  }

  // Where nothing is, the page says what to do first, and what next.
  await page.goto(url + at())
  await page.getByRole('button', { name: 'Add a channel' }).click()
  await form.locator('#name').fill('hook')
  await form.locator('#kind').click()
  await page.locator('.ant-select-dropdown:not(.ant-select-dropdown-hidden) .ant-select-item-option', { hasText: 'Webhook' }).click()
  await form.locator('#options_url').fill('nowhere')
  await form.getByRole('button', { name: 'Save' }).click()
  facts.badOption = await form.locator('.ant-form-item', { has: page.locator('#options_url') }).locator('.ant-form-item-explain-error').textContent()
  await form.locator('#options_url').fill(`${sink}/hook`)
  await save()

  // A test of it, until the other side has answered.
  await page.getByRole('button', { name: 'Test… hook' }).click()
  await page.getByRole('button', { name: 'Send test' }).click()
  await page.waitForSelector('[data-test=SENT]')
  facts.test = await page.locator('[data-test] .keep-lines').textContent()
  await page.getByRole('button', { name: 'Close', exact: true }).last().click()

  await page.goto(url + at())
  facts.next = await page.locator('[aria-current=step] .strong').textContent()
  await page.getByRole('button', { name: 'Add a receiver' }).click()
  await form.locator('#name').fill('on-call')
  await form.locator('#members_0_name').fill('Ada')
  await save()
  await page.getByRole('tab', { name: 'Rules' }).click()
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await form.locator('#name').fill('night')
  await form.locator('[data-trigger="task.failed"]').check()
  await form.locator('#workflows').fill(workflow)
  await form.locator('#workflows').press('Enter')
  await form.locator('#group_for').fill('soon')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('must be a duration').waitFor()
  await form.locator('#group_for').fill('0s')
  await form.locator('#templates_subject').fill('Oh: {{ alerts[0].workflow }}')
  await form.getByRole('button', { name: 'Preview a message' }).click()
  facts.preview = await form.locator('[data-preview] .ant-alert-title').textContent()
  await form.getByRole('button', { name: 'Add a step' }).click()
  await form.getByLabel('Receivers').last().fill('on-call')
  await form.getByLabel('Receivers').last().press('Enter')
  await save()
  facts.rule = await asked(page, `/alert-rules/night`).then(({ spec }) => [spec.triggers, spec.workflows, spec.receivers, spec.group_for, spec.escalation])

  // What no event tells: the fields follow from what is chosen.
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await form.locator('#name').fill('watch')
  await form.locator('#enabled').click()
  await form.locator('[data-trigger="run.failed"]').uncheck()
  for (const trigger of ['workflow.not-started', 'workflow.low-success-rate']) await form.locator(`[data-trigger="${trigger}"]`).check()
  facts.labels = await form.locator('#labels').count()
  await form.locator('#workflows').fill('*')
  await form.locator('#workflows').press('Enter')
  await form.locator('#deadline_at').fill('06:15')
  await form.locator('#success_rate_percent').fill('75')
  await form.locator('[data-trigger="worker.gone"]').check()
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('can’t be mixed with others').waitFor()
  await form.locator('[data-trigger="worker.gone"]').uncheck()
  await save()
  facts.watch = await asked(page, `/alert-rules/watch`).then(({ spec }) => [spec.enabled, spec.triggers, spec.workflows, spec.deadline.at, spec.deadline.days.length, spec.success_rate])

  // A run fails. Its alerts appear without a reload; one is looked at, taken in hand, and silenced.
  await page.goto(url + at())
  await page.getByText('No alerts yet').waitFor()
  const command = { type: 'START', project, workflow, idempotency_key: crypto.randomUUID() }
  await page.evaluate((body) => fetch('/api/v1/commands', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }), command)
  await page.getByRole('cell', { name: 'A run failed' }).waitFor({ timeout: PATIENCE })
  await page.getByRole('cell', { name: 'A task failed after its last retry' }).waitFor()
  await page.getByRole('table').press('j')
  await page.getByRole('cell', { name: 'A run failed' }).click({ position: { x: 5, y: 5 } })
  await page.waitForSelector('[data-delivery=SENT]', { timeout: PATIENCE })
  facts.answer = await page.locator('[data-delivery=SENT] code').first().textContent()
  await page.getByRole('button', { name: 'Acknowledge' }).click()
  await page.locator('.ant-drawer .facts', { hasText: admin }).waitFor()
  facts.canAgain = await page.getByRole('button', { name: 'Acknowledge' }).count()
  await page.getByRole('button', { name: 'Silence…' }).click()
  facts.silence = [await page.inputValue('#workflow'), await page.inputValue('#rule')]
  await page.getByText('4 h', { exact: true }).click()
  await page.getByRole('button', { name: 'Silence', exact: true }).click()
  await page.locator('#workflow').waitFor({ state: 'detached' })
  facts.hours = await asked(page, '/alert-silences').then(({ items }) => items.map((one) => Math.round((Date.parse(one.until) - Date.parse(one.since)) / 3_600_000)))
  await page.goto(url + at('&tab=messages&sent=["SENT"]'))
  await page.locator('[role=cell] [data-state=SENT]').nth(1).waitFor()
  facts.messages = (await page.locator('[role=cell] [data-state=SENT]').count()) >= 2

  await page.locator('[role=cell] [data-state=SENT]').first().click()
  facts.tries = await page.locator('.ant-drawer [data-try=ok] code').textContent()
  await page.keyboard.press('Escape')

  // From a run: what each rule made of it, and the alert that came of it.
  const { items: alerts } = await asked(page, '/alerts')
  const run = alerts[0].instance_id
  await page.goto(`${url}/runs/${run}`)
  await page.locator('.page-actions').getByRole('link', { name: 'Alerts' }).click()
  await page.waitForSelector('[data-explained="run.failed"] [data-verdict=alert]')
  facts.why = await page.locator('[data-explained="run.failed"] [data-verdict]').evaluateAll((all) => all.map((one) => [one.dataset.verdict, one.lastChild.textContent.replace(/\d+/, '#')]))
  await page.locator('[data-explained="run.failed"]').getByRole('button', { name: /^Alert/ }).click()
  await page.waitForSelector('.ant-drawer [data-alert]')
  await page.goBack() // closes what has opened over the page
  await page.locator('[data-alert]').waitFor({ state: 'detached' })

  // An old form shows what has changed meanwhile, and replaces it only when it is told to.
  await page.goto(url + at('&tab=rules&open=night'))
  await form.locator('#description').fill('mine')
  await page.evaluate(async (path) => {
    const now = await fetch(path)
    const { spec } = await now.json()
    const headers = { 'if-match': now.headers.get('etag'), 'content-type': 'application/json' }
    await fetch(path, { method: 'PUT', headers, body: JSON.stringify({ ...spec, severity: 'critical' }) })
  }, `/api/v1/projects/${project}/alert-rules/night`)
  await form.getByRole('button', { name: 'Save' }).click()
  facts.changed = await page.locator('[data-stale] .diff-line.added').allTextContents().then((lines) => lines.map((line) => line.replace(/^[\d+ ]+/, '')))
  found.axe.stale = await findings(page)
  await page.getByRole('button', { name: 'Overwrite with my changes' }).click()
  await form.waitFor({ state: 'detached' })
  facts.mine = await asked(page, '/alert-rules/night').then(({ spec }) => [spec.description, spec.severity])

  // Every page in light and dark and at 360 px; no text that is in no language.
  const { items } = await asked(page, '/alerts')
  const pages = {
    history: [at(), '[role=cell]'],
    alert: [at(`&alert=${items[0].id}`), '[data-delivery]'],
    messages: [at('&tab=messages'), '[role=cell]'],
    rules: [at('&tab=rules'), '[role=cell]'],
    rule: [at('&tab=rules&open=night'), '.entry'],
    watch: [at('&tab=rules&open=watch'), '#deadline_at'],
    receivers: [at('&tab=receivers'), '[role=cell]'],
    receiver: [at('&tab=receivers&open=on-call'), '.target'],
    channels: [at('&tab=channels'), '[role=cell]'],
    channel: [at('&tab=channels&open=hook'), '#options_url'],
    silences: [at('&tab=silences'), '[role=cell]'],
    why: [at(`&tab=why&run=${run}`), '[data-verdict]'],
    choose: ['/alerts', '.empty'],
    empty: ['/alerts?project=nothing', '.setup-steps'],
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
    await page.waitForTimeout(100)
    found.overhang[name] = await overhang(page)
    await page.setViewportSize({ width: 1280, height: 800 })
  })
  found.raw = await untranslated(page, url, pages)
  await chosen(page, { language: 'zh' })
  await page.goto(url + at())
  await page.getByRole('cell', { name: '运行失败' }).waitFor()
  facts.chinese = [await page.locator('h1').textContent(), await page.getByRole('cell', { name: '运行失败' }).count()]
  await chosen(page, {})
  await page.goto(url + at('&tab=silences'))
  await page.getByRole('button', { name: /^End/ }).click()
  await page.locator('.ant-modal-confirm').getByRole('button', { name: 'End' }).click()
  await page.getByText('No active silences').waitFor()

  // Who may only read sees all of it, and why nothing can be changed.
  const other = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' })
  const looker = await other.newPage()
  looker.setDefaultTimeout(PATIENCE)
  await signedIn(looker, url, reader, readerPassword)
  await looker.goto(url + at('&tab=rules&open=night'))
  const button = looker.locator('.ant-drawer form').getByRole('button', { name: /^Save/ })
  facts.reader = [await button.getAttribute('aria-disabled'), (await button.textContent()).includes('You need the role writer or owner')]
  found.faults = faults
} catch (error) {
  await browser.contexts()[0]?.pages()[0]?.screenshot({ path: join(folder, 'failed.png') }).catch(() => undefined)
  throw error
} finally {
  await browser.close()
}
process.stdout.write(JSON.stringify(found))

/** Returns what the API answers about the project, to the one who is signed in. */
function asked(page, path) {
  return page.evaluate(async (address) => (await fetch(address)).json(), `/api/v1/projects/${project}${path}`)
}
