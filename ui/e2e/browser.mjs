/** A real Chromium, as the tests use it: the address of Shoal and a one-time link come as arguments. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** How long to wait for what a page shows, in ms: a busy machine takes some ten seconds for a page. */
export const PATIENCE = 100_000

export async function launched() {
  return chromium.launch({ executablePath: process.env.SHOAL_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
}

/** Returns a page that notes what it must not do: break its policy, throw, write errors. */
export async function watched(context) {
  const page = await context.newPage()
  const faults = []
  page.on('pageerror', (error) => faults.push(`throws ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    // A refused sign-in is an answer with an error, which the browser writes down by itself.
    if (message.type() === 'error' && !text.startsWith('Failed to load resource')) faults.push(text)
  })
  return { page, faults }
}

/** Returns the serious findings of axe about a page. */
export async function findings(page) {
  // A button that is fading in has the contrast of neither state.
  await page.evaluate(() => Promise.all(document.getAnimations().filter((one) => Number.isFinite(one.effect?.getComputedTiming().endTime)).map((one) => one.finished.catch(() => null))))
  // By the debugger, which the policy of the page does not bind.
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }))
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`)
}

/** Returns how many pixels a page is wider than its window. */
export async function overhang(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
}

/** Signs in with a name and a password. */
export async function signedIn(page, url, name, password) {
  await page.goto(`${url}/login`)
  await page.getByLabel('User name').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('**/today')
}

/** Sets what a person has chosen for this browser. */
export async function chosen(page, settings) {
  await page.evaluate((text) => localStorage.setItem('shoal.settings', text), JSON.stringify({ language: 'en', theme: 'light', zone: 'browser', ...settings }))
}

/** Opens pages (by name: path, what is awaited there) and looks at each. */
export async function visited(page, url, pages, look) {
  for (const [name, [path, awaited]] of Object.entries(pages)) {
    await page.goto(url + path)
    await page.waitForSelector(awaited)
    await look(name)
  }
}

/** Returns texts of pages that are in no brackets of the made-up language and came in no answer. */
export async function untranslated(page, url, pages) {
  let answers = ''
  const arriving = new Set()
  page.on('response', (response) => {
    if (!/\/api\//.test(response.url()) || !/json/.test(response.headers()['content-type'] ?? '')) return
    const read = response.text().then((body) => (answers += body)).catch(() => undefined)
    arriving.add(read)
    void read.finally(() => arriving.delete(read))
  })
  await chosen(page, { language: 'pseudo' })
  const raw = {}
  await visited(page, url, pages, async (name) => {
    const texts = await page.evaluate(() => {
      const found = []
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        // Code, times and the names of keys are in no language; the name of a language is in its own.
        if (node.parentElement.closest('script,style,noscript,code,pre,kbd,time,textarea,.mono,.brand,span[lang],[data-when]')) continue
        const text = node.textContent.trim()
        if (/[A-Za-z]{3}/.test(text) && !text.includes('⟦')) found.push(text)
      }
      for (const element of document.querySelectorAll('[aria-label],[placeholder]')) {
        // The component library speaks the two languages by itself.
        if (element.matches('.anticon, .ant-drawer-close, .ant-modal-close, .ant-tabs-nav-more')) continue
        for (const name of ['aria-label', 'placeholder']) {
          const text = element.getAttribute(name) ?? ''
          // These the library has in English alone.
          if (['Clear', 'Increase Value', 'Decrease Value'].includes(text)) continue
          if (/[A-Za-z]{3}/.test(text) && !text.includes('⟦')) found.push(`${name}: ${text}`)
        }
      }
      return found
    })
    // The page may show an answer before it has come here.
    await Promise.all(arriving)
    const known = (word) => answers.includes(word) || answers.includes(JSON.stringify(word).slice(1, -1))
    const own = [...new Set(texts)].filter((one) => {
      const plain = one.replace(/^(aria-label|placeholder): /, '')
      return !known(plain) && !plain.split(/[\s/:@#·,+…→]+/).every((word) => !/[A-Za-z]{3}/.test(word) || known(word))
    })
    if (own.length) raw[name] = own
  })
  return raw
}
