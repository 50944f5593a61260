/**
 * Authors workflows in a real Chromium and says what came of it, as JSON on standard output.
 *
 * Arguments: the address, a one-time link, what is there as JSON: {reader: {name, password}, token}.
 * tests/acceptance/ui/test_authoring.py has the cluster and judges.
 */
import { PATIENCE, findings, launched, watched } from './browser.mjs'

const [, , url, link, given] = process.argv
const { reader, token } = JSON.parse(given)
const found = { faults: [], axe: {}, facts: {} }
const { facts, axe } = found
const workflow = (name) => `${url}/projects/default/workflows/${name}`
const browser = await launched()

async function signedIn(options) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB', ...options })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const { page, faults } = await watched(context)
  page.setDefaultTimeout(PATIENCE)
  return { context, page, faults }
}

const tasks = (page) => page.locator('.canvas [data-task]').evaluateAll((nodes) => nodes.map((node) => node.dataset.task).sort())
const edges = (page) => page.locator('.canvas .react-flow__edge').evaluateAll((nodes) => nodes.map((node) => node.dataset.id).sort())
/** Returns the edges as soon as there are so many, or whatever there is after some seconds. */
const drawn = async (page, count) => {
  // What was counted is returned: a canvas that draws itself anew has no edges for a moment.
  for (let tries = 0; ; tries += 1) {
    const found = await edges(page)
    if (found.length === count || tries === 100) return found
    await page.waitForTimeout(100)
  }
}
const saved = (page) => page.waitForSelector('[data-draft=saved]')
/** Waits until the API has a draft that says something. */
const keeps = async (page, name, wanted) => {
  for (let tries = 0; tries < 100; tries += 1) {
    const answer = await page.context().request.get(`${url}/api/v1/projects/default/workflows/${name}/draft`)
    if (answer.ok() && (await answer.json()).text.includes(wanted)) return
    await page.waitForTimeout(200)
  }
  throw new Error(`the draft of ${name} never says ${wanted}`)
}
const code = (page) => page.evaluate(() => JSON.parse(Object.entries(localStorage).find(([key]) => key.startsWith('shoal.draft.') && key.endsWith(`/${location.pathname.split('/')[4]}`))?.[1] ?? '{}').text ?? '')
const view = (page, name) => page.locator('.editor-bar').getByText(name, { exact: true }).click()
const rename = async (page, name) => {
  const input = page.locator('.editor-side').getByLabel('Name', { exact: true })
  await input.fill(name)
  await input.press('Enter')
  await page.waitForSelector(`.canvas [data-task="${name}"]`)
}
const drag = async (page, from, to) => {
  const box = await from.boundingBox()
  const target = await to.boundingBox()
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
  await page.mouse.down()
  await page.mouse.move(target.x + target.width / 2 - 6, target.y + target.height / 2, { steps: 8 })
  await page.mouse.move(target.x + target.width / 2, target.y + target.height / 2, { steps: 3 })
  await page.mouse.up()
}
const publish = async (page) => {
  await saved(page)
  await page.getByRole('button', { name: 'Publish…' }).click()
  await page.locator('.ant-modal').getByText(/tasks added/).waitFor()
  await page.locator('.ant-modal').getByRole('button', { name: 'Publish', exact: true }).click()
}

/** Where tasks stand, as the API has it. */
const layout = async (page, name) => (await (await page.context().request.get(`${url}/api/v1/projects/default/workflows/${name}/layout`)).json()).places
/** Drags a task down by 60 pixels, and waits until the API has its place. Returns all places. */
const pulled = async (page, name, task) => {
  const before = JSON.stringify((await layout(page, name))[task])
  const box = await page.locator(`.canvas [data-task=${task}]`).boundingBox()
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2 + 60, { steps: 6 })
  await page.mouse.up()
  for (let tries = 0; tries < 100; tries += 1) {
    const places = await layout(page, name)
    if (JSON.stringify(places[task]) !== before) return places
    await page.waitForTimeout(100)
  }
  throw new Error(`the layout of ${name} never has another place of ${task}`)
}

/** Publishes the newest version with one more task, as a colleague would. */
const publishAnother = async (name, task) => {
  const headers = { Authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const address = `${url}/api/v1/projects/default/workflows/${name}`
  const { definition } = await (await fetch(address, { headers })).json()
  const own = structuredClone(definition)
  delete own.project
  own.tasks.push({ name: task, type: 'SHELL', params: { script: 'true' } })
  const answer = await fetch(address, { method: 'PUT', headers, body: JSON.stringify(own) })
  if (!answer.ok) throw new Error(await answer.text())
}

try {
  const one = await signedIn()
  const { page } = one
  await page.goto(link)
  await page.waitForURL('**/today')

  // By mouse: three tasks dragged from the palette, joined by their handles.
  await page.goto(`${url}/workflows?new=empty`)
  await page.locator('.ant-modal').getByLabel('Name').fill('by_mouse')
  axe.new = await findings(page)
  await page.getByRole('button', { name: 'Open the editor' }).click()
  await page.waitForURL('**/by_mouse/edit')
  const canvas = page.locator('.canvas')
  await canvas.waitFor()
  axe.empty = await findings(page)
  for (const [at, name] of ['first', 'second', 'third'].entries()) {
    await page.locator('[data-type=SHELL]').dragTo(canvas, { targetPosition: { x: 140, y: 100 + 120 * at } })
    await rename(page, name)
  }
  for (const [source, target] of [['first', 'second'], ['second', 'third']]) {
    // A task that was just named is measured a moment later; until then its handles lead nowhere.
    const isJoined = () => page.locator(`.react-flow__edge[data-id="${source}→${target}"]`).waitFor({ state: 'attached', timeout: 3000 }).then(() => true, () => false)
    for (let tries = 0; tries < 4; tries += 1) {
      await page.locator(`[data-task=${source}]`).hover()
      await drag(page, page.locator(`[data-task=${source}] .source`), page.locator(`[data-task=${target}] .target`))
      if (await isJoined()) break
    }
  }
  facts.byMouse = { tasks: await tasks(page), edges: await edges(page) }
  axe.canvas = await findings(page)

  // One undo for everything, and back.
  await canvas.focus()
  await page.keyboard.press('Control+z')
  facts.undone = await drawn(page, 1)
  await page.keyboard.press('Control+Shift+z')
  facts.redone = await drawn(page, 2)

  await page.getByRole('button', { name: 'Arrange' }).click()
  await publish(page)
  await page.waitForURL('**/workflows/by_mouse')
  await page.getByRole('button', { name: 'Start…' }).click()
  await page.locator('form').getByRole('button', { name: 'Start' }).click()
  await page.waitForURL('**/runs/*')
  await page.waitForSelector('.page-head [data-state=SUCCEEDED]', { timeout: PATIENCE })
  facts.ran = await page.locator('.task-node[data-state=SUCCEEDED]').count()

  // By keyboard alone: add, name, connect by name.
  await page.goto(`${workflow('by_keyboard')}/edit`)
  await page.waitForSelector('[data-type=PYTHON]')
  await canvas.focus()
  await page.keyboard.press('a')
  for (let count = 0; count < 2; count += 1) {
    await page.keyboard.type('python')
    await page.keyboard.press('Enter')
    await page.waitForFunction((number) => document.querySelectorAll('.canvas [data-task]').length === number, count + 1)
    if (count > 0) break
    await page.keyboard.press('Escape') // from the search to the canvas, and there from what is chosen
    await page.keyboard.press('Escape')
    await page.keyboard.press('a')
  }
  await page.keyboard.press('Escape')
  await page.keyboard.press('c')
  await page.locator('.ant-modal').waitFor()
  await page.keyboard.type('python')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.react-flow__edge')
  facts.byKeyboard = await edges(page)

  // What a task of the draft would get, for a date, before anything is published.
  await view(page, 'Code')
  await view(page, 'Canvas')
  await page.locator('.canvas [data-task=python]').click()
  await page.locator('.editor-side').getByLabel('Name', { exact: true }).waitFor()
  await page.locator('.editor-side').getByText('Preview', { exact: true }).click()
  await page.locator('.editor-side').getByText('As the draft would run').waitFor()
  await page.locator('.editor-side .code').first().waitFor()
  facts.rendered = await page.locator('.editor-side .code').first().innerText()
  axe.rendered = await findings(page)
  await page.locator('.editor-side').getByText('Form', { exact: true }).click()

  // Copy and paste, here and from there to another workflow.
  await canvas.focus()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Control+c')
  await page.keyboard.press('Control+v')
  await page.waitForFunction(() => document.querySelectorAll('.canvas [data-task]').length === 4)
  facts.pasted = await edges(page)
  await saved(page)
  await page.emulateMedia({ reducedMotion: 'reduce' }) // what follows is done without motion
  await page.goto(`${workflow('by_mouse')}/edit`)
  await page.waitForSelector('[data-task=first]')
  await canvas.focus()
  await page.keyboard.press('Control+v')
  await page.waitForFunction(() => document.querySelectorAll('.canvas [data-task]').length === 5)
  facts.pastedElsewhere = await tasks(page)
  await page.keyboard.press('Control+z')

  // The text, and the picture follows; a change of the picture, and the text follows.
  await view(page, 'Code')
  const editor = page.locator('.code-frame .cm-content')
  await editor.click()
  await page.keyboard.press('Control+End')
  await page.keyboard.insertText('  # typed by hand\n  - name: typed\n    type: SHELL\n    depends_on: [third]\n    params: {script: "echo typed"}\n')
  axe.code = await findings(page)
  await view(page, 'Canvas')
  await page.waitForSelector('[data-task=typed]')
  facts.typed = await edges(page)
  await page.locator('[data-task=typed]').click()
  await page.locator('.editor-side [data-field=retries] input').fill('4')
  await saved(page)
  const before = await code(page)
  facts.textFollows = before.includes('  # typed by hand\n  - name: typed\n    type: SHELL\n    depends_on: [third]\n    params: {script: "echo typed"}\n    retries: 4\n')
  axe.inspector = await findings(page)

  // What is wrong is told at its field, at its line, and ends in no version.
  await page.locator('.editor-side [data-field=timeout] input').fill('soon')
  await page.waitForSelector('.form-problem')
  facts.problem = await page.locator('[data-field=timeout] .form-problem').innerText()
  facts.badge = await page.locator('[data-task=typed] .task-problems').innerText()
  await view(page, 'Code')
  await page.waitForSelector('.cm-lint-marker-error')
  await page.getByRole('button', { name: 'Publish…' }).click()
  await page.locator('.ant-modal .problem-list').waitFor()
  facts.refusesPublishing = await page.locator('.ant-modal').getByRole('button', { name: 'Publish', exact: true }).isDisabled()
  axe.problems = await findings(page)
  await page.keyboard.press('Escape')
  await page.locator('.ant-modal').waitFor({ state: 'hidden' })

  // The table: a cell in place.
  await view(page, 'Table')
  const cell = page.getByLabel('typed timeout')
  await cell.fill('30m')
  await cell.press('Enter')
  await page.getByText('No problems').waitFor()
  axe.table = await findings(page)
  await saved(page)
  facts.cell = (await code(page)).includes('timeout: 30m')

  // How the workflow behaves: a setting is one line of the text.
  await view(page, 'Settings')
  const owner = page.locator('.editor-settings [data-field=owner] input')
  await owner.fill('the night shift')
  await owner.press('Enter')
  await saved(page)
  facts.setting = (await code(page)).includes('owner: the night shift')
  axe.settings = await findings(page)
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Undo' }).click()
  await saved(page)
  await view(page, 'Table')

  // A second window of the same person: different tasks are merged, the same field is decided upon.
  const other = await one.context.newPage()
  await other.goto(`${workflow('by_mouse')}/edit?sel=first`)
  await other.waitForSelector('[data-task=first]')
  await other.locator('.editor-side [data-field=description] input').fill('from the second window')
  await keeps(other, 'by_mouse', 'from the second window')
  await page.getByLabel('second retries').fill('2')
  await page.getByLabel('second retries').press('Enter')
  await keeps(page, 'by_mouse', 'retries: 2')
  await view(page, 'Code')
  await page.getByText('from the second window').waitFor()
  facts.merged = (await code(page)).includes('retries: 2')
  await other.locator('.editor-side [data-field=description] input').fill('theirs')
  await keeps(other, 'by_mouse', 'description: theirs')
  await view(page, 'Canvas')
  await page.getByRole('button', { name: 'Fit', exact: true }).click()
  await page.locator('[data-task=first]').click()
  await page.locator('.editor-side [data-field=description] input').fill('mine')
  await page.locator('.ant-modal .conflict').first().waitFor()
  axe.conflict = await findings(page)
  facts.conflict = await page.locator('.conflict legend').allInnerTexts()
  await page.getByRole('radio', { name: 'Theirs' }).check()
  await page.getByRole('button', { name: 'Use the selection' }).click()
  await saved(page)
  facts.decided = (await code(page)).includes('description: theirs')

  // Both move a task: the layout has what each has moved, and so does who opens the workflow next.
  const first = await pulled(page, 'by_mouse', 'second')
  const both = await pulled(other, 'by_mouse', 'third')
  facts.places = { isKept: both.second.y === first.second.y, isMoved: both.third.y !== first.third.y, third: [both.third.x, both.third.y] }
  await other.close()

  // Somebody publishes: the draft stays, and takes that in when it is asked to.
  await publishAnother('by_mouse', 'by_another')
  await page.getByText('Version 2 was published').waitFor({ timeout: PATIENCE })
  axe.appeared = await findings(page)
  await page.getByRole('button', { name: 'Merge the changes' }).click()
  await page.getByText('Version 2 was published').waitFor({ state: 'hidden' })
  await keeps(page, 'by_mouse', 'by_another')
  const taken = await code(page)
  facts.tookIn = [taken.includes('by_another'), taken.includes('description: theirs')]

  // A schedule: its next fire times change while it is edited, and again in what publishing would do.
  await view(page, 'Schedules')
  await page.getByRole('button', { name: 'Add a schedule' }).first().click()
  await page.waitForSelector('[data-fires] li')
  const fires = () => page.locator('[data-fires] li').allInnerTexts()
  const six = await fires()
  await page.locator('input[type=time]').fill('02:30')
  await page.waitForFunction((old) => document.querySelector('[data-fires] li')?.innerText !== old, six[0])
  facts.fires = [six[0], (await fires())[0]].map((text) => text.match(/\d\d:\d\d/)?.[0])
  axe.schedules = await findings(page)
  await saved(page)
  await page.getByRole('button', { name: 'Publish…' }).click()
  await page.locator('.fire-change .fires .added').first().waitFor()
  axe.publish = await findings(page)
  await page.locator('.ant-modal').getByRole('button', { name: 'Publish', exact: true }).click()
  await page.waitForURL('**/workflows/by_mouse')

  // Versions: any two, and back to one as a draft.
  await page.goto(`${workflow('by_mouse')}?tab=versions`)
  await page.locator('.comparing-graph .task-node.added').first().waitFor()
  axe.versions = await findings(page)
  await page.getByRole('button', { name: 'Restore as draft' }).last().click()
  await page.waitForURL('**/by_mouse/edit**')
  await saved(page)
  await view(page, 'Canvas')
  facts.restored = await tasks(page)
  await page.getByRole('button', { name: 'Discard' }).click()
  await page.locator('.ant-modal').getByRole('button', { name: 'Discard' }).click()
  await page.waitForSelector('[data-draft=published]')
  facts.discarded = (await tasks(page)).includes('by_another')

  // A crash loses nothing: what had not reached the API is there again.
  await one.context.route('**/draft', (route) => (route.request().method() === 'PUT' ? route.abort() : route.continue()))
  await page.locator('[data-task=first]').click()
  await page.locator('.editor-side [data-field=description] input').fill('before the crash')
  await page.waitForSelector('[data-draft=offline]')
  await page.reload()
  await one.context.unroute('**/draft')
  await page.waitForSelector('[data-task=first]')
  await saved(page)
  facts.survived = (await code(page)).includes('before the crash')

  // In Chinese, dark.
  await page.evaluate(() => localStorage.setItem('shoal.settings', JSON.stringify({ language: 'zh', theme: 'dark' })))
  for (const name of ['canvas', 'code', 'table', 'schedules']) {
    await page.goto(`${workflow('by_mouse')}/edit?view=${name}&sel=first`)
    await page.locator('.editor-body').waitFor()
    await page.waitForTimeout(500)
    axe[`dark ${name}`] = await findings(page)
  }
  facts.chinese = await page.locator('.editor-bar').innerText()

  // Who may only read sees everything and changes nothing; it says why, and who could help.
  const two = await signedIn()
  await two.page.goto(`${url}/login`)
  await two.page.getByLabel('Name').fill(reader.name)
  await two.page.getByLabel('Password').fill(reader.password)
  await two.page.keyboard.press('Enter')
  await two.page.waitForURL('**/today')
  await two.page.goto(`${workflow('by_mouse')}/edit?sel=first`)
  await two.page.waitForSelector('[data-task=first]')
  const frozen = two.page.locator('.editor-side').getByLabel('Name', { exact: true })
  const stands = (page) => page.locator('.react-flow__node[data-id=third]').evaluate((node) => JSON.stringify(node.style.transform.match(/-?[0-9.]+/g).map(Number)))
  const reads = await two.context.newPage()
  await reads.goto(workflow('by_mouse'))
  await reads.waitForSelector('.react-flow__node[data-id=third]')
  facts.reader = {
    sees: [await stands(two.page), await stands(reads)].every((place) => place === JSON.stringify(facts.places.third)),
    isDisabled: await frozen.isDisabled(),
    says: await two.page.locator('.ant-alert').first().innerText(),
    publish: await two.page.getByRole('button', { name: /Publish/ }).getAttribute('aria-disabled'),
  }
  await two.page.locator('.canvas').focus()
  await two.page.keyboard.press('Control+a')
  await two.page.keyboard.press('Delete')
  facts.reader.tasks = (await tasks(two.page)).includes('first')
  axe.reader = await findings(two.page)
  found.faults = [...one.faults, ...two.faults]
} catch (error) {
  const pages = browser.contexts().flatMap((context) => context.pages())
  for (const [at, page] of pages.entries()) if (process.env.SHOAL_SHOTS) await page.screenshot({ path: `${process.env.SHOAL_SHOTS}/failed-${at}.png` })
  throw error
} finally {
  await browser.close()
}
process.stdout.write(`${JSON.stringify(found)}\n`)
