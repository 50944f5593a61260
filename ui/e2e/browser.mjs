/** A real Chromium, as the tests use it: the address of Shoal and a one-time link come as arguments. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

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
