/**
 * Groups and many tasks, on the canvas and in the grid, in a real Chromium; says what came of it as JSON.
 *
 * Arguments: the address, a one-time link, what is there as JSON: {run, manyRun, reader: {name, password}}.
 * tests/acceptance/ui/test_grouping.py has the cluster and judges.
 */
import { PATIENCE, findings, launched, signedIn, watched } from './browser.mjs'

const [, , url, link, given] = process.argv
const { run, manyRun, reader } = JSON.parse(given)
const found = { faults: [], axe: {}, facts: {} }
const { facts, axe } = found
const workflow = (name) => `${url}/projects/default/workflows/${name}`
const browser = await launched()

const layout = async (page, name) => (await page.context().request.get(`${url}/api/v1/projects/default/workflows/${name}/layout`)).json()
/** Returns the layout as soon as it says something. */
const keeps = async (page, name, wanted) => {
  for (let tries = 0; tries < 100; tries += 1) {
    const now = await layout(page, name)
    if (wanted(now)) return now
    await page.waitForTimeout(100)
  }
  throw new Error(`the layout of ${name} never says ${wanted}: ${JSON.stringify(await layout(page, name)).slice(0, 500)}`)
}
const nodes = (page) => page.locator('.graph [data-task], .graph .task-node[data-group]').evaluateAll((all) => all.map((one) => one.dataset.task ?? `group ${one.dataset.group}`).sort())
const edges = (page) => page.locator('.graph .react-flow__edge').evaluateAll((all) => all.map((one) => one.dataset.id).sort())
const dragged = async (page, from, by) => {
  await page.mouse.move(from.x, from.y)
  await page.mouse.down()
  await page.mouse.move(from.x + by.x / 2, from.y + by.y / 2, { steps: 4 })
  await page.mouse.move(from.x + by.x, from.y + by.y, { steps: 4 })
  await page.mouse.up()
}
const middle = (box) => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 })
const draft = (page, name) => page.evaluate((of) => JSON.parse(Object.entries(localStorage).find(([key]) => key.startsWith('shoal.draft.') && key.endsWith(`/${of}`))?.[1] ?? '{}').text ?? '', name)

try {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' })
  const { page, faults } = await watched(context)
  page.setDefaultTimeout(PATIENCE)
  await page.goto(link)
  await page.waitForURL('**/today')

  // By keyboard: two tasks are chosen, grouped and named; the group is folded, unfolded, undone.
  await page.goto(`${workflow('grouped')}/edit`)
  const canvas = page.locator('.canvas')
  await page.waitForSelector('[data-task=load_a]')
  await page.locator('[data-task=load_a]').click()
  await page.locator('[data-task=load_b]').click({ modifiers: ['Shift'] })
  await canvas.focus()
  await page.keyboard.press('Control+g')
  await page.locator('.ant-modal').waitFor()
  await page.keyboard.type('no such name!')
  facts.refusesName = await page.locator('.ant-modal').getByRole('button', { name: 'Save' }).isDisabled()
  axe.naming = await findings(page)
  await page.keyboard.press('Control+a')
  await page.keyboard.type('load')
  await page.keyboard.press('Enter')
  await page.waitForSelector('[data-frame=load]')
  facts.stored = (await keeps(page, 'grouped', (now) => now.groups.load)).groups
  axe.frame = await findings(page)
  await canvas.focus()
  await page.keyboard.press('-')
  await page.waitForSelector('.task-node[data-group=load]')
  facts.folded = { nodes: await nodes(page), edges: await edges(page) }
  facts.storedFold = (await keeps(page, 'grouped', (now) => now.folded.length)).folded
  axe.folded = await findings(page)

  // The node is dragged: its tasks go with it, and the text says nothing of it.
  const before = (await layout(page, 'grouped')).places
  await dragged(page, middle(await page.locator('.task-node[data-group=load]').boundingBox()), { x: 0, y: 130 })
  const after = (await keeps(page, 'grouped', (now) => now.places.load_a.y !== before.load_a.y)).places
  facts.movedTogether = [after.load_a.y - before.load_a.y === after.load_b.y - before.load_b.y, after.load_a.y > before.load_a.y, after.fetch.y === before.fetch.y]
  facts.noDraft = (await draft(page, 'grouped')) === ''

  // The run's picture: folded for everybody, with the worst state; unfolding there is a view of one's own.
  await page.goto(`${url}/runs/${run}`)
  const node = page.locator('.task-node[data-group=load]')
  await node.waitFor()
  facts.worst = [await node.getAttribute('data-state'), await node.locator('.task-type').innerText()]
  axe.run = await findings(page)
  await page.locator('.react-flow__node[data-id="group:load"]').focus()
  await page.keyboard.press('Enter')
  await page.locator('[data-frame=load]').waitFor()
  await page.waitForURL('**/runs/*fold=*')
  facts.unfolded = await page.locator('.task-node[data-state]').count()
  await page.reload()
  await page.locator('[data-frame=load]').waitFor()
  facts.staysFolded = (await layout(page, 'grouped')).folded
  await page.getByRole('button', { name: 'Groups' }).click()
  await page.getByRole('menuitem', { name: 'Fold load' }).click()
  await node.waitFor()

  // Unfolded by its button, named by the menu, undone and dissolved.
  await page.goto(`${workflow('grouped')}/edit`)
  await page.getByRole('button', { name: 'Unfold load' }).click()
  await page.waitForSelector('[data-frame=load]')
  await page.locator('.frame-name').click()
  await page.getByRole('button', { name: 'Groups' }).click()
  await page.getByRole('menuitem', { name: 'Name the group' }).click()
  await page.locator('.ant-modal').waitFor()
  await page.keyboard.type('intake')
  await page.keyboard.press('Enter')
  await page.waitForSelector('[data-frame=intake]')
  await canvas.focus()
  await page.keyboard.press('Control+z')
  await page.waitForSelector('[data-frame=load]')
  await page.keyboard.press('Control+Shift+z')
  await page.waitForSelector('[data-frame=intake]')
  facts.named = Object.keys((await keeps(page, 'grouped', (now) => now.groups.intake && !now.folded.length)).groups)
  await page.keyboard.press('Control+Shift+g')
  await page.locator('[data-frame=intake]').waitFor({ state: 'detached' })
  await keeps(page, 'grouped', (now) => !Object.keys(now.groups).length)
  await page.keyboard.press('Control+z')
  await page.waitForSelector('[data-frame=intake]')
  await page.getByRole('button', { name: 'Fold intake' }).click()
  await keeps(page, 'grouped', (now) => now.folded.length)

  // Who may only read folds for himself alone.
  const other = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' })
  const second = await watched(other)
  await signedIn(second.page, url, reader.name, reader.password)
  await second.page.goto(`${workflow('grouped')}/edit`)
  await second.page.locator('.task-node[data-group=intake]').waitFor()
  await second.page.getByRole('button', { name: 'Unfold intake' }).click()
  await second.page.locator('[data-frame=intake]').waitFor()
  await second.page.getByRole('button', { name: 'Groups' }).click()
  facts.readerMay = await second.page.getByRole('menuitem', { name: 'Name the group' }).getAttribute('aria-disabled')
  await second.page.waitForTimeout(1500)
  facts.readerChanges = (await layout(page, 'grouped')).folded
  await other.close()

  // Many tasks: one canvas, and what is pointed at can be chosen, dragged and joined.
  await page.goto(`${workflow('many')}/edit`)
  await page.waitForSelector('.graph-many')
  facts.many = [Number(await page.locator('.graph-many').getAttribute('data-boxes')), await page.locator('.canvas [data-task]').count() <= 1]
  axe.many = await findings(page)
  const area = await canvas.boundingBox()
  /** Points at painted tasks until one is an element. */
  const pointed = async (from) => {
    for (let x = from; x < area.width - 20; x += 6) {
      for (let y = 40; y < area.height - 40; y += 6) {
        await page.mouse.move(area.x + x, area.y + y)
        const one = page.locator('.canvas [data-task]:hover')
        if (await one.count()) return { name: await one.first().getAttribute('data-task'), at: { x: area.x + x, y: area.y + y } }
      }
    }
    throw new Error('no painted task is found by the pointer')
  }
  const one = await pointed(60)
  await page.mouse.click(one.at.x, one.at.y)
  await page.waitForSelector(`.editor-side [data-field]`)
  facts.chosen = (await page.locator('.editor-side').getByLabel('Name', { exact: true }).inputValue()) === one.name
  const stood = (await layout(page, 'many')).places[one.name]
  await dragged(page, one.at, { x: 0, y: 60 })
  const moved = (await keeps(page, 'many', (now) => now.places[one.name] && now.places[one.name].y !== stood?.y)).places
  facts.dragged = Object.keys(moved).length > 120 && moved[one.name].y > 0

  // A rectangle chooses what it touches, and all of it is dragged by one.
  await page.keyboard.press('Escape')
  await page.keyboard.down('Shift')
  await page.mouse.move(area.x + 5, area.y + 5)
  await page.mouse.down()
  await page.mouse.move(area.x + area.width / 2, area.y + area.height / 2, { steps: 5 })
  await page.mouse.move(area.x + area.width - 60, area.y + area.height - 10, { steps: 5 })
  await page.mouse.up()
  await page.keyboard.up('Shift')
  await page.locator('.editor-side').getByText('tasks selected').waitFor()
  facts.rectangle = await page.locator('.editor-side h2').innerText()
  await canvas.focus()
  await page.keyboard.press('Control+g')
  await page.locator('.ant-modal').waitFor()
  await page.keyboard.press('Enter')
  facts.manyGrouped = (await keeps(page, 'many', (now) => now.groups.group_1)).groups.group_1.length
  await canvas.focus()
  await page.keyboard.press('-')
  await page.waitForSelector('.task-node[data-group=group_1]')
  facts.manyFolded = [await page.locator('.graph-many').count(), (await nodes(page)).length]
  await page.keyboard.press('Control+z')
  await page.keyboard.press('Control+z')
  await page.waitForSelector('.graph-many')
  await keeps(page, 'many', (now) => !Object.keys(now.groups).length)

  // A line from the handle of one, dropped on another that is painted.
  await page.keyboard.press('Escape')
  const source = await pointed(60)
  const handle = await page.locator('.canvas [data-task]:hover .source').boundingBox()
  const start = middle(handle)
  await page.mouse.move(start.x, start.y)
  await page.mouse.down()
  let target = ''
  for (let x = area.width - 40; x > area.width / 2 && !target; x -= 8) {
    for (let y = 40; y < area.height - 40 && !target; y += 8) {
      await page.mouse.move(area.x + x, area.y + y)
      const names = await page.locator('.canvas [data-task]').evaluateAll((all) => all.map((element) => element.dataset.task))
      target = names.find((name) => name !== source.name) ?? ''
    }
  }
  await page.mouse.up()
  await page.waitForSelector('[data-draft=saved]')
  await page.waitForTimeout(300)
  facts.joined = { source: source.name, target, text: await draft(page, 'many') }

  // The grid of many tasks: painted; arrows lead to every cell, and a click opens what is pointed at.
  await page.goto(`${workflow('many')}?tab=grid`)
  await page.waitForSelector('.grid-many')
  axe.grid = await findings(page)
  const grid = page.locator('.grid-box')
  await grid.focus()
  for (let count = 0; count < 42; count += 1) await page.keyboard.press('ArrowDown')
  facts.gridCell = await grid.evaluate((box) => document.getElementById(box.getAttribute('aria-activedescendant'))?.getAttribute('aria-label'))
  facts.gridScrolled = await grid.evaluate((box) => box.scrollTop > 0)
  await grid.evaluate((box) => (box.scrollTop = 24 * 100))
  await page.waitForTimeout(200)
  const sheet = await page.locator('.grid-many').boundingBox()
  await page.mouse.move(sheet.x + 220 + 12, sheet.y + 5 * 24 + 12)
  facts.gridTitle = await page.locator('.grid-many').getAttribute('title')
  facts.gridPainted = await page.locator('.grid-many').evaluate((canvas) => {
    const ratio = canvas.width / canvas.clientWidth
    const { data } = canvas.getContext('2d').getImageData(220 * ratio, 5 * 24 * ratio, 24 * ratio, 24 * ratio)
    return new Set(Array.from({ length: data.length / 4 }, (_, at) => `${data[4 * at]},${data[4 * at + 1]},${data[4 * at + 2]}`)).size > 3
  })
  await page.mouse.click(sheet.x + 220 + 12, sheet.y + 5 * 24 + 12)
  await page.waitForURL(`**/runs/${manyRun}?task=*`)
  facts.gridOpened = new URL(page.url()).searchParams.get('task')
  found.faults.push(...faults, ...second.faults)
} finally {
  await browser.close()
}
process.stdout.write(JSON.stringify(found))
