import { launched, watched, findings, overhang } from './browser.mjs'
const [,, url, link, mode] = process.argv
const browser = await launched()
const narrow = mode.includes('narrow')
const context = await browser.newContext({ viewport: narrow ? {width:360,height:740} : {width:1360,height:820}, colorScheme: mode.includes('dark') ? 'dark':'light', locale: mode.includes('zh') ? 'zh-CN':'en-GB', timezoneId:'Europe/Berlin' })
const { page, faults } = await watched(context)
if (mode.includes('login')) { await page.goto(url+'/login'); await page.waitForSelector('form'); await page.screenshot({path:`/tmp/uicl/${mode}-login.png`}); console.log(await findings(page), faults) }
await page.goto(link); await page.waitForURL('**/today', {timeout: 30000})
const pages = JSON.parse(process.argv[5])
for (const [name, path, wait] of pages) {
  await page.goto(url+path); await page.waitForSelector(wait ?? 'h1', {timeout:30000}).catch(e=>console.log(name, 'NO', wait)); await page.waitForTimeout(1500)
  await page.screenshot({path:`/tmp/uicl/${mode}-${name}.png`})
  console.log(name, 'axe', await findings(page), 'over', await overhang(page), faults.splice(0))
}
await browser.close()
