/** Lengths of time in seconds, and what has changed between two numbers, as text. Pure. */
import { durationText } from './format'

/** Returns seconds as people read them: `340 ms`, `12 s`, `1 h 04 min`; `–`: not known. */
export function secondsText(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '–'
  if (seconds === 0) return '0 s'
  return Math.abs(seconds) < 0.95 ? `${Math.round(Math.abs(seconds) * 1000)} ms` : durationText(Math.abs(seconds) * 1000)
}

/** The same with the sign of a difference: `+12 s`, `−3 min 00 s`. */
export function differenceText(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '–'
  if (Math.abs(seconds) < 0.0005) return '±0 s'
  return `${seconds > 0 ? '+' : '−'}${secondsText(seconds)}`
}

/** Returns a share as percent: `3.6 %`, `0.04 %`, `100 %`; `–`: not known. */
export function percentText(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–'
  const percent = 100 * share
  const size = Math.abs(percent)
  const digits = size === 0 || size >= 10 ? 0 : size >= 0.1 ? 1 : 2
  return `${percent.toFixed(digits).replace('-', '−')} %`
}

/** Returns by how much a number has grown: `+12 %`, `−3 %`, `×4.2`; null: it cannot be said. */
export function growthText(now: number | null, before: number | null): string | null {
  if (now === null || before === null || before === 0) return null
  const ratio = now / before
  if (ratio >= 3) return `×${ratio >= 10 ? Math.round(ratio) : ratio.toFixed(1)}`
  const percent = Math.round(100 * (ratio - 1))
  return percent === 0 ? '±0 %' : `${percent > 0 ? '+' : '−'}${Math.abs(percent)} %`
}

/** Returns a number with its thousands apart; large ones short: `9,600`, `1.2 M`. */
export function countText(count: number | null | undefined, language: string): string {
  if (count === null || count === undefined) return '–'
  return formatOf(language, Math.abs(count) >= 1_000_000, Math.abs(count) < 10 && !Number.isInteger(count)).format(count)
}

function formatOf(language: string, isLarge: boolean, hasFraction: boolean): Intl.NumberFormat {
  const key = `${language} ${isLarge} ${hasFraction}`
  const known = formats.get(key)
  if (known) return known
  const options: Intl.NumberFormatOptions = isLarge ? { notation: 'compact', maximumFractionDigits: 1 } : { maximumFractionDigits: hasFraction ? 1 : 0 }
  const made = new Intl.NumberFormat(language === 'zh' ? 'zh-CN' : 'en-GB', options)
  formats.set(key, made)
  return made
}

const formats = new Map<string, Intl.NumberFormat>()
