/** A language that is made of English: what stands outside of its brackets, nobody can translate. Pure. */
import { en } from './en'

const ACCENTS: Record<string, string> = { a: 'á', e: 'é', i: 'í', o: 'ó', u: 'ú', A: 'Á', E: 'É', I: 'Í', O: 'Ó', U: 'Ú' }

/** Returns texts (those of every page) in brackets, with accents, a third longer, as translations are. */
export function pseudo(texts: Readonly<Record<string, string>> = en): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, `⟦${accented(text)}${'·'.repeat(Math.ceil(text.length / 3))}⟧`]))
}

/** Leaves alone what is put in the place of a value. */
function accented(text: string): string {
  return text.split(/(\{\{\w+\}\})/).map((part) => (part.startsWith('{{') ? part : part.replace(/[aeiou]/gi, (char) => ACCENTS[char] ?? char))).join('')
}
