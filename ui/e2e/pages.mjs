/**
 * Opens every page in a real Chromium and says what it found, as JSON on standard output.
 *
 * Arguments: the address, a one-time link, what is there as JSON: {run, failed, project, workflow}.
 * tests/acceptance/ui/test_pages.py has the cluster and judges.
 */
import { PATIENCE, findings, launched, overhang, watched } from './browser.mjs'

const [, , url, link, text] = process.argv
const { run, live, project, workflow } = JSON.parse(text)
const found = { faults: [], axe: {}, overhang: {}, facts: {} }
const PAGES = {
  today: ['/today', '.lane-bar'],
  workflows: ['/workflows', '[role=cell]'],
  projects: ['/projects', '.card'],
  runs: ['/runs', '[role=cell]'],
  workflow: [`/projects/${project}/workflows/${workflow}`, '.task-node'],
  map: [`/projects/${project}/map`, '.task-node'],
  settings: [`/projects/${project}/workflows/${workflow}?tab=settings`, '.settings-list'],
  dependencies: [`/projects/${project}/workflows/${workflow}?tab=dependencies`, '.task-node'],
  start: [`/projects/${project}/workflows/${workflow}?start=1`, 'form input'],
  run: [`/runs/${run}`, '.task-node'],
  gantt: [`/runs/${run}?tab=gantt`, '.gantt-bar'],
  events: [`/runs/${run}?tab=events`, '[role=cell]'],
  log: [`/runs/${run}?task=fetch`, '.log-line'],
  cluster: ['/cluster', '.partition'],
  queue: ['/cluster?tab=queue', '[role=cell]'],
  takeovers: ['/cluster?tab=takeovers', '[role=cell]'],
}

const browser = await launched()
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' })
  const { page, faults } = await watched(context)
  page.setDefaultTimeout(PATIENCE)

  // Nobody is signed in: any page leads to the sign-in, and back from there.
  await page.goto(`${url}/runs/${run}`)
  await page.waitForURL('**/login**')
  await page.waitForSelector('form')
  found.axe.login = await findings(page)

  await page.goto(link)
  await page.waitForURL('**/today')
  found.facts.hashAfterSignIn = new URL(page.url()).hash
  await page.waitForSelector('[data-live=live]')

  for (const [name, [path, awaited]] of Object.entries(PAGES)) {
    await page.goto(url + path)
    await page.waitForSelector(awaited)
    found.axe[name] = await findings(page)
  }

  // A run that is under way: a worker finishes a task, and the page shows it without asking.
  await page.goto(`${url}/runs/${live}`)
  await page.waitForSelector('.task-node[data-state=RUNNING]')
  found.facts.sawRunning = true
  await page.getByRole('button', { name: 'Stop' }).click()
  found.facts.touched = await page.locator('[data-touched] li .mono').allInnerTexts()
  await page.locator('.ant-modal').getByRole('button', { name: 'Stop' }).click()
  await page.waitForSelector('.page-head [data-state=STOPPED]')
  found.facts.stopped = true

  // What programs write is text, whatever it looks like.
  await page.goto(`${url}/runs/${run}?task=fetch`)
  await page.locator('.log-line').filter({ hasText: 'onerror' }).waitFor()
  await page.waitForTimeout(300)
  found.facts.inert = await page.evaluate(() => ({
    elements: document.querySelectorAll('.log-line img, .log-line script').length,
    links: [...document.querySelectorAll('.log-line a')].map((link) => link.getAttribute('href')).filter((to) => !/^https?:/.test(to ?? '')),
    shown: [...document.querySelectorAll('.log-line')].some((line) => line.textContent.includes('<script>document.title=2</script>')),
    title: !['1', '2', '3', 'title'].includes(document.title),
  }))

  // Many tasks are one picture, in which one can be chosen; what is near is made of elements.
  await page.goto(`${url}/projects/${project}/workflows/wide`)
  await page.waitForSelector('.graph-many')
  found.axe.many = await findings(page)
  found.facts.mounted = await page.locator('.react-flow__node').count()
  found.facts.painted = await page.locator('.graph-many').evaluate((canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0))
  const pane = await page.locator('.react-flow__pane').boundingBox()
  for (let at = 0; at < 400 && !page.url().includes('sel='); at += 1) {
    await page.mouse.click(pane.x + pane.width / 2 + (at % 20) * 4 - 40, pane.y + pane.height / 2 + Math.floor(at / 20) * 4 - 40)
  }
  found.facts.clicked = /sel=t\d+/.test(page.url())
  await page.getByLabel('Find a task').fill('t150')
  await page.locator('.ant-select-item-option').first().click()
  await page.waitForURL('**sel=t150**')
  await page.waitForSelector('[data-id=t150] .task-node')
  found.facts.near = (await page.locator('.react-flow__node').count()) <= 120

  // What waits for what: what has run, what has not, in words and as a picture; the day before is another one.
  await page.goto(`${url}/projects/${project}/workflows/${workflow}?tab=dependencies`)
  await page.waitForSelector('.task-node')
  const waiting = async () => (await page.locator('[role=row]').allInnerTexts()).slice(1).map((row) => row.split('\n')[0])
  found.facts.waiting = await waiting()
  found.facts.drawn = await page.locator('.dependency-map .react-flow__edge').count()
  const state = page.locator('[role=row]').filter({ hasText: workflow }).first()
  found.facts.ran = await state.locator('[data-state]').getAttribute('data-state')
  await page.getByRole('button', { name: 'Previous day' }).click()
  await page.waitForURL('**date=**')
  await state.getByText('no run').waitFor()

  // In Chinese, dark, and on a narrow screen.
  await page.evaluate(() => localStorage.setItem('shoal.settings', JSON.stringify({ language: 'zh', theme: 'dark' })))
  await page.goto(`${url}/today`)
  await page.waitForSelector('.lane-bar')
  found.facts.chinese = await page.locator('h1').innerText()
  found.axe.dark = await findings(page)
  await page.goto(`${url}/runs/${run}`)
  found.facts.said = await page.locator('p.reason').innerText()
  await page.setViewportSize({ width: 360, height: 740 })
  for (const [name, [path, awaited]] of Object.entries(PAGES)) {
    await page.goto(url + path)
    await page.waitForSelector(awaited)
    found.overhang[name] = await overhang(page)
  }
  found.faults = faults
} finally {
  await browser.close()
}
process.stdout.write(JSON.stringify(found))
