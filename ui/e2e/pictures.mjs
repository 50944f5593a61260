/**
 * Takes a picture of every page: light, dark, at 360 px, and of what is empty.
 *
 * Arguments: the address, a one-time link, what is there as JSON (tests/screenshots/seed.py), the
 * folder, names of pictures (all).
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { launched } from './browser.mjs'
import { indexed } from './png.mjs'

const [, , url, link, text, folder, ...names] = process.argv
const { run, good, live, slow, backfill, alert, project, workflow, report } = JSON.parse(text)
const at = `/projects/${project}`
// Name: address, what is awaited, what is done then.
const PAGES = {
  today: ['/today', '.lane-bar'],
  workflows: ['/workflows', '[role=cell] [data-state]'],
  projects: ['/projects', '.card'],
  workflow: [`${at}/workflows/${workflow}`, '.task-node'],
  grid: [`${at}/workflows/${workflow}?tab=grid`, '.grid-cell .glyph'],
  calendar: [`${at}/workflows/${workflow}?tab=calendar`, '[data-kind=good], [data-kind=bad]', dayChosen],
  settings: [`${at}/workflows/${workflow}?tab=settings`, '.settings-list'],
  definition: [`${at}/workflows/${workflow}?tab=definition`, '.code'],
  versions: [`${at}/workflows/${workflow}?tab=versions`, '.comparing-graph .task-node'],
  edit: [`${at}/workflows/${workflow}/edit?sel=load_us`, '.editor-side [data-field]'],
  'edit-table': [`${at}/workflows/${workflow}/edit?view=table`, '.task-row [role=gridcell]'],
  'edit-code': [`${at}/workflows/${workflow}/edit?view=code`, '.code-frame .cm-line'],
  'edit-schedules': [`${at}/workflows/${workflow}/edit?view=schedules`, '.fires li'],
  'edit-settings': [`${at}/workflows/${workflow}/edit?view=settings`, '.editor-settings .form-field'],
  dependencies: [`${at}/workflows/${workflow}?tab=dependencies`, '.task-node'],
  map: [`${at}/map`, '.task-node'],
  schedules: [`${at}/workflows/${workflow}?tab=schedules`, '.fires li'],
  start: [`${at}/workflows/${workflow}?start=1`, 'form input'],
  backfills: [`${at}/workflows/${workflow}?tab=backfills`, '.counts-bar'],
  'backfill-plan': [`${at}/workflows/${workflow}?tab=backfills&plan=1`, '#b-from', planned],
  backfill: [`/backfills/${backfill}`, '[role=cell]'],
  runs: ['/runs', '[role=cell]'],
  bulk: ['/runs', '[role=cell]', previewed],
  run: [`/runs/${run}`, '.task-node'],
  gantt: [`/runs/${run}?tab=gantt`, '.gantt-bar'],
  tasks: [`/runs/${run}?tab=tasks`, '[role=cell]'],
  replay: [`/runs/${run}?tab=events`, '.replay-bar input[type=range]', replayed],
  'run-baseline': [`/runs/${slow}?tab=baseline`, '.baseline-bars'],
  'insight-overview': ['/insight', '.plot-bar'],
  'insight-slower': ['/insight?tab=slower', '.spark'],
  'insight-tasks': ['/insight?tab=slower&workflow=flights/nightly', '[role=cell] .spark'],
  'insight-waits': ['/insight?tab=waits', '[role=cell]'],
  'insight-failures': ['/insight?tab=failures', '.cause'],
  'insight-lateness': ['/insight?tab=lateness', '[role=cell]'],
  'insight-load': ['/insight?tab=load', '.heat-cell'],
  'insight-cost': ['/insight?tab=cost', '[role=cell]'],
  'insight-schedules': ['/insight?tab=schedules', '.plot-bar'],
  live: [`/runs/${live}`, '[data-state=RUNNING]'],
  log: [`/runs/${live}?task=train`, '.log-line'],
  script: [`/runs/${run}?task=load_us&panel=script`, '.code'],
  why: [`/runs/${run}?task=load_us&panel=why`, '.ant-drawer .findings li'],
  details: [`/runs/${run}?task=load_us&panel=details`, '.ant-drawer .facts'],
  'run-parameters': [`/runs/${run}?tab=parameters`, '.facts'],
  compare: [`/compare?a=${good}&b=${run}&task=load_us`, '.diff'],
  'compare-graph': [`/compare?a=${good}&b=${run}&tab=graph`, '.task-node'],
  alerts: [`/alerts?project=${project}`, '[role=cell]'],
  alert: [`/alerts?project=${project}&alert=${alert}`, '[data-delivery]'],
  'alert-messages': [`/alerts?project=${project}&tab=messages`, '[role=cell]'],
  'alert-rules': [`/alerts?project=${project}&tab=rules`, '[role=cell]'],
  'alert-rule': [`/alerts?project=${project}&tab=rules&open=night`, '.triggers'],
  'alert-deadline': [`/alerts?project=${project}&tab=rules&open=on-time`, '#deadline_margin', (page) => page.locator('#no_success_for').scrollIntoViewIfNeeded()],
  'alert-receivers': [`/alerts?project=${project}&tab=receivers`, '[role=cell]'],
  'alert-receiver': [`/alerts?project=${project}&tab=receivers&open=head-of-data`, '.target'],
  'alert-channels': [`/alerts?project=${project}&tab=channels`, '[role=cell]'],
  'alert-channel': [`/alerts?project=${project}&tab=channels&open=mail`, '.ant-drawer .ant-form-item input'],
  'alert-test': [`/alerts?project=${project}&tab=channels`, '[role=cell]', tested],
  'alert-why': [`/alerts?project=${project}&tab=why&run=${run}`, '[data-verdict]'],
  silences: [`/alerts?project=${project}&tab=silences`, '[role=cell]'],
  silence: [`/alerts?project=${project}&alert=${alert}`, '[data-delivery]', silenced],
  parameters: [`${at}/settings`, '[role=cell]'],
  secrets: [`${at}/settings?tab=secrets`, '[role=cell]'],
  members: [`${at}/settings?tab=members`, '[role=cell]'],
  'concurrency-groups': [`${at}/settings?tab=groups`, '[role=cell]'],
  'data-sources': [`${at}/data-sources`, '[role=cell]'],
  'data-source': [`${at}/data-sources?open=warehouse`, '.ant-drawer .ant-form-item input'],
  resources: [`${at}/resources`, '[role=cell]'],
  resource: [`${at}/resources?file=etl/clean.sh&panel=diff`, '.diff'],
  users: ['/admin', '[role=cell]'],
  environments: ['/admin?tab=environments', '[role=cell]'],
  audit: ['/admin?tab=audit', '[role=cell]', verified],
  account: ['/account', '.facts'],
  publish: [`${at}/workflows/${workflow}/edit?view=schedules`, '[data-fires] li', changed],
  cluster: ['/cluster', '.partition'],
  queue: ['/cluster?tab=queue', '[role=cell]'],
  takeovers: ['/cluster?tab=takeovers', '[role=cell]'],
}
const EMPTY = {
  'empty-alerts': ['/alerts?project=empty', '.setup-steps'],
  'empty-workflows': ['/workflows?project=empty', '.empty'],
  'empty-resources': ['/projects/empty/resources', '.empty'],
  'empty-data-sources': ['/projects/empty/data-sources', '.empty'],
  'empty-settings': ['/projects/empty/settings', '.empty'],
}
// What `shoal insight report` has written.
const REPORTS = {
  'insight-report': { viewport: { width: 1080, height: 1900 } },
  'insight-report-dark': { viewport: { width: 1080, height: 1200 }, colorScheme: 'dark' },
  'insight-report-narrow': { viewport: { width: 360, height: 740 } },
}
const WIDE = { width: 1280, height: 800 }
const NARROW = { width: 360, height: 740 }

mkdirSync(folder, { recursive: true })
const browser = await launched()
try {
  const context = await browser.newContext({ viewport: WIDE, locale: 'en-GB', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const paper = await browser.newPage() // where pictures are made smaller
  await picture(page, paper, 'sign-in', ['/login', 'form'])
  await page.goto(link)
  await page.waitForURL('**/today')
  for (const [theme, size, ending] of [['light', WIDE, ''], ['dark', WIDE, '-dark'], ['light', NARROW, '-narrow']]) {
    await page.setViewportSize(size)
    await page.evaluate((wanted) => localStorage.setItem('shoal.settings', JSON.stringify({ language: 'en', theme: wanted, zone: 'browser' })), theme)
    for (const [name, what] of Object.entries(PAGES)) await picture(page, paper, name + ending, what)
    if (!ending) for (const [name, what] of Object.entries(EMPTY)) await picture(page, paper, name, what)
  }
  if (!names.length || names.includes('alert-mail')) await mail(page, paper)
  for (const [name, look] of Object.entries(REPORTS)) if (!names.length || names.includes(name)) await printed(paper, name, look)
} finally {
  await browser.close()
}

/** The mail about a run that failed, as its HTML part looks. */
async function mail(page, paper) {
  const html = await page.evaluate(
    async ([home, id]) => {
      const { spec } = await (await fetch(`${home}/alert-rules/night`)).json()
      const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ rule: spec, alert_id: id }) }
      return (await (await fetch(`${home}/alert-previews`, asked)).json()).html
    },
    [`/api/v1/projects/${project}`, alert],
  )
  const letter = await browser.newPage({ viewport: { width: 820, height: 310 } })
  await letter.setContent(html)
  await stored(letter, paper, 'alert-mail')
}

async function printed(paper, name, look) {
  const page = await browser.newPage(look)
  await page.goto(`file://${report}`)
  await stored(page, paper, name)
  await page.close()
}

async function dayChosen(page) {
  await page.locator('[data-kind=bad], [data-kind=good]').last().click()
  await page.locator('[data-chosen]').waitFor()
}

async function tested(page) {
  await page.getByRole('button', { name: 'Test… chat' }).click()
  await page.getByRole('button', { name: 'Send test' }).click()
  await page.waitForSelector('[data-test=SENT]')
}

async function silenced(page) {
  await page.getByRole('button', { name: 'Silence…' }).click()
  await page.waitForSelector('#workflow')
}

async function picture(page, paper, name, [path, awaited, act]) {
  if (names.length && !names.includes(name)) return
  await page.goto(url + path)
  await page.waitForSelector(awaited)
  if (act) await act(page)
  await page.waitForTimeout(450) // fonts, the fitting of graphs
  await stored(page, paper, name)
}

async function stored(page, paper, name) {
  const png = await page.screenshot({ animations: 'disabled' })
  const { pixels, width, height } = await unpacked(paper, png)
  writeFileSync(join(folder, `${name}.png`), indexed(Buffer.from(pixels, 'base64'), width, height))
  process.stderr.write(`${name}\n`)
}

/** Returns the pixels of a picture, in base64. */
function unpacked(paper, png) {
  return paper.evaluate(async (data) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob())
    const drawing = new OffscreenCanvas(image.width, image.height).getContext('2d')
    drawing.drawImage(image, 0, 0)
    const bytes = drawing.getImageData(0, 0, image.width, image.height).data
    let chars = ''
    for (let at = 0; at < bytes.length; at += 30_000) chars += String.fromCharCode(...bytes.subarray(at, at + 30_000))
    return { pixels: btoa(chars), width: image.width, height: image.height }
  }, png.toString('base64'))
}

async function planned(page) {
  await page.fill('#b-from', '2026-08-25')
  await page.fill('#b-to', '2026-09-06')
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await page.waitForSelector('[data-plan]')
  await page.locator('.form-foot').scrollIntoViewIfNeeded()
}

async function previewed(page) {
  await page.locator('[role=columnheader] input[type=checkbox]').check()
  await page.getByRole('toolbar').getByRole('button', { name: /^Recover/ }).click()
  await page.waitForSelector('[data-bulk=preview]')
}

async function changed(page) {
  const time = page.locator('input[type=time]')
  await time.fill((await time.inputValue()) === '02:30' ? '03:30' : '02:30')
  await page.getByRole('button', { name: 'Publish…' }).click()
  await page.locator('.fire-change .fires .added').first().waitFor()
}

async function replayed(page) {
  for (let step = 0; step < 8; step += 1) await page.locator('.replay-bar input[type=range]').press('ArrowLeft')
}

async function verified(page) {
  await page.getByRole('button', { name: 'Verify the chain' }).click()
  await page.waitForSelector('[data-verdict]')
}
