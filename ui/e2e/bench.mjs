/**
 * Measures pages that show much in a real Chromium: processor time of the page's own thread.
 *
 * Arguments: the address, a one-time link, what is there as JSON: {run, project, workflow}. bench/ui
 * has the cluster and prints what is written to standard output.
 */
import { launched } from './browser.mjs'

const [, , url, link, text] = process.argv
const { run, project, workflow } = JSON.parse(text)
const FRAMES = 60
const found = {}
const browser = await launched()
try {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB' })
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  await page.goto(link)
  await page.waitForURL('**/today')
  const debug = await context.newCDPSession(page)
  await debug.send('Performance.enable', { timeDomain: 'threadTicks' })
  const cpuMs = async () => (await debug.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value * 1000
  const go = (path) => page.evaluate((to) => (history.pushState({}, '', to), dispatchEvent(new PopStateEvent('popstate'))), path)

  /** Opens a page within the application, as a link does. */
  const opened = async (path, awaited) => {
    await page.goto(`${url}/projects`)
    await page.waitForSelector('.card')
    await page.waitForTimeout(500)
    const [cpu, wall] = [await cpuMs(), Date.now()]
    await go(path)
    await page.waitForSelector(awaited)
    const shown = Date.now() - wall
    await page.waitForTimeout(1000)
    return { shownMs: shown, cpuMs: Math.round((await cpuMs()) - cpu) }
  }
  /** Does something in each of some frames; returns processor time per frame. */
  const frames = async (act) => {
    const before = await cpuMs()
    for (let frame = 0; frame < FRAMES; frame += 1) {
      await act(frame)
      await page.evaluate(() => new Promise(requestAnimationFrame))
    }
    return Number((((await cpuMs()) - before) / FRAMES).toFixed(1))
  }
  found.nothing = await frames(() => page.mouse.move(5, 5))

  await opened(`/runs/${run}`, '.graph-many') // what is loaded once
  found.graph = await opened(`/runs/${run}`, '.graph-many')
  const pan = async () => {
    const box = await page.locator('.react-flow__pane').boundingBox()
    await page.mouse.move(box.x + 700, box.y + 200)
    await page.mouse.down()
    const cost = await frames((frame) => page.mouse.move(box.x + 700 - frame * 6, box.y + 200 + (frame % 7)))
    await page.mouse.up()
    return cost
  }
  found.panFar = await pan()
  await page.getByLabel('Find a task').fill('t500')
  await page.locator('.ant-select-item-option').first().click()
  await page.waitForSelector('.task-node')
  await page.keyboard.press('Escape')
  await page.waitForTimeout(500)
  found.panNear = await pan()

  await opened(`/projects/${project}/workflows/${workflow}?tab=grid`, '.grid-cell')
  found.grid = await opened(`/projects/${project}/workflows/${workflow}?tab=grid`, '.grid-cell')
  const cell = await page.locator('.grid-cell').first().boundingBox()
  await page.mouse.move(cell.x + 5, cell.y + 5)
  found.scrollGrid = await frames(() => page.mouse.wheel(0, 60))

  found.list = await opened(`/runs/${run}?tab=tasks`, '[role=cell]')
  const row = await page.locator('[role=cell]').first().boundingBox()
  await page.mouse.move(row.x + 5, row.y + 5)
  found.scrollList = await frames(() => page.mouse.wheel(0, 120))
} finally {
  await browser.close()
}
process.stdout.write(`${JSON.stringify(found)}\n`)
