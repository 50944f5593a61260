/**
 * Measures pages that show much in a real Chromium: processor time of the page's own thread.
 *
 * Arguments: the address, a one-time link, what is there as JSON: {run, project, workflow, log}. bench/ui
 * has the cluster and prints what is written to standard output.
 */
import { createServer, request } from 'node:http'
import { launched } from './browser.mjs'

const [, , url, link, text] = process.argv
const { run, project, workflow, log } = JSON.parse(text)
const FRAMES = 60
const EVENTS_A_SECOND = 3000
const EVENTS_S = 8 // so long they are measured, after 3 s of them
const found = {}
const browser = await launched()

/** The API behind a server that answers one stream of events with many more: `said` makes the next. */
async function flooded(said) {
  let number = 1_000_000_000 // behind all events that there are
  const server = createServer((asked, answer) => {
    if (!asked.url.startsWith('/api/v1/events')) {
      const { hostname, port } = new URL(url)
      const onward = request({ hostname, port, path: asked.url, method: asked.method, headers: asked.headers }, (found) => {
        answer.writeHead(found.statusCode, found.headers)
        found.pipe(answer)
      })
      onward.on('error', () => answer.destroy())
      asked.pipe(onward)
      return
    }
    answer.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    const began = Date.now()
    let sent = 0
    const timer = setInterval(() => {
      const due = Math.floor(((Date.now() - began) * EVENTS_A_SECOND) / 1000)
      let text = ''
      for (; sent < due; sent += 1) text += said((number += 1))
      answer.write(text)
    }, 20)
    answer.on('close', () => clearInterval(timer))
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }
}
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

  // A log of 1 GB, at its end.
  await page.goto(`${url}/runs/${log.run}`)
  await page.waitForSelector('.task-node')
  await page.waitForTimeout(500)
  const began = Date.now()
  await go(`/runs/${log.run}?task=${log.task}&panel=log`)
  await page.getByText(log.last).waitFor()
  found.logMs = Date.now() - began

  // Many events of a run that is looked at: every task changes three times a second.
  const { tasks } = await (await context.request.get(`${url}/api/v1/instances/${run}`)).json()
  const states = ['QUEUED', 'CLAIMED', 'RUNNING', 'SUCCEEDED']
  const server = await flooded((id) => {
    const task = tasks[id % tasks.length]
    const data = { task: task.task, attempt: task.attempt, state: states[Math.floor(id / tasks.length) % states.length], worker: 'w1', reason: null }
    return `id: ${id}\nevent: task.state\ndata: ${JSON.stringify({ id, at: new Date().toISOString(), kind: 'task.state', project, instance_id: run, task_instance_id: task.id, data })}\n\n`
  })
  await page.goto(`${server.url}/runs/${run}`)
  await page.waitForSelector('.graph-many')
  await page.waitForTimeout(3000)
  const before = await cpuMs()
  const from = Date.now()
  await page.waitForTimeout(EVENTS_S * 1000)
  found.eventsShare = Math.round((100 * ((await cpuMs()) - before)) / (Date.now() - from))
  await page.goto('about:blank')
  server.close()
} finally {
  await browser.close()
}
process.stdout.write(`${JSON.stringify(found)}\n`)
