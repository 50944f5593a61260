import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { adminEn } from './admin/en'
import { adminZh } from './admin/zh'
import { alertsEn } from './alerts/en'
import { alertsZh } from './alerts/zh'
import { attemptEn } from './attempt/en'
import { attemptZh } from './attempt/zh'
import { clusterEn } from './cluster/en'
import { clusterZh } from './cluster/zh'
import { editorEn } from './editor/en'
import { editorZh } from './editor/zh'
import { en as shellEn } from './en'
import { graphEn } from './graph/en'
import { graphZh } from './graph/zh'
import { helpEn } from './help/en'
import { helpZh } from './help/zh'
import { insightEn } from './insight/en'
import { insightZh } from './insight/zh'
import { resourcesEn } from './resources/en'
import { resourcesZh } from './resources/zh'
import { runEn } from './run/en'
import { runZh } from './run/zh'
import { zh as shellZh } from './zh'

const en = { ...shellEn, ...editorEn, ...alertsEn, ...clusterEn, ...attemptEn, ...graphEn, ...adminEn, ...resourcesEn, ...helpEn, ...insightEn, ...runEn }
const zh = { ...shellZh, ...editorZh, ...alertsZh, ...clusterZh, ...attemptZh, ...graphZh, ...adminZh, ...resourcesZh, ...helpZh, ...insightZh, ...runZh }
const english: Record<string, string> = en
const chinese: Record<string, string> = zh

it('has each key once', () => {
  const lazy = [editorEn, alertsEn, clusterEn, attemptEn, graphEn, adminEn, resourcesEn, helpEn, insightEn, runEn].flatMap((texts) => Object.keys(texts))
  expect(lazy.filter((key, index) => key in shellEn || lazy.indexOf(key) !== index)).toEqual([])
})
const places = (text: string | undefined): string[] => (text?.match(/\{\{\w+\}\}/g) ?? []).sort()

it('has the same keys in both languages', () => {
  expect(Object.keys(zh).sort()).toEqual(Object.keys(en).filter((key) => !key.endsWith('_one')).sort())
})

it('has the same places for values in both languages', () => {
  for (const key of Object.keys(zh)) expect([key, places(chinese[key])]).toEqual([key, places(english[key])])
})

it('is translated', () => {
  const same = Object.keys(zh).filter((key) => chinese[key] === english[key])
  expect(same).toEqual(['shell.zone.utc', 'cluster.zookeeper'])
})

it('has no text that nothing shows', () => {
  const source = files(join(import.meta.dirname, '../..')).map((file) => readFileSync(file, 'utf8')).join('\n')
  const quoted = new Set(source.match(/'[\w.-]+'/g))
  const made = /^(state|live|mode|may|command|start|shell\.theme|kind|role|grant|backfill\.(by|only|reprocess|order|onFailure|downstream|request)|runs\.since|events\.kind|audit\.outcome|settings\.groups|rhythm|on_gap|on_overlap|fire|diff|publish|edit|calendar|today\.rank|run\.verdict|insight\.(tab|trigger|sort|measure|cost\.by)|priority|alerts\.(state|message|kind|severity|trigger|triggers|day|setup|rules|receivers|channels|silence\.choice|deadline\.mode|channel\.kind))\./ // from values, such as `state.${state}`
  const unused = Object.keys(en)
    .map((key) => key.replace(/_(one|other)$/, ''))
    .filter((key) => !made.test(key) && !quoted.has(`'${key}'`))
  expect(unused).toEqual([])
})

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'i18n' ? [] : files(path)
    return /\.tsx?$/.test(entry.name) ? [path] : []
  })
}
