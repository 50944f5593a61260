/** The languages: English and Chinese. `t` takes the keys that there are, and no others. */
import type { Locale } from 'antd/es/locale'
import componentsEn from 'antd/locale/en_US'
import i18next from 'i18next'
import { initReactI18next, useTranslation } from 'react-i18next'
import type { AttemptKey } from './attempt/en'
import type { AdminKey } from './admin/en'
import type { ClusterKey } from './cluster/en'
import type { codesZh as CodesZh } from './codes.zh'
import type { AlertKey } from './alerts/en'
import type { EditorKey } from './editor/en'
import { en, type Key } from './en'
import type { GraphKey } from './graph/en'
import type { HelpKey } from './help/en'
import type { InsightKey } from './insight/en'
import type { ResourceKey } from './resources/en'
import type { RunKey } from './run/en'
import { pseudo } from './pseudo'

/** `pseudo`: English in brackets, to find texts that are not keys. It is in no menu. */
export type Language = 'en' | 'zh' | 'pseudo'
type Plain<K> = K extends `${infer Stem}_${'one' | 'other'}` ? Stem : K
export type TextKey = Plain<Key | EditorKey | AlertKey | ClusterKey | GraphKey | AdminKey | ResourceKey | AttemptKey | HelpKey | InsightKey | RunKey> // those behind the first come with their pages
export type Translate = (key: TextKey, values?: Record<string, string | number>) => string

/** Returns the language of the browser, as far as there is one of ours. */
export function ownLanguage(): Language {
  return navigator.languages[0]?.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

let wanted: Language = 'en'
let components: Locale = componentsEn
let codes: Partial<typeof CodesZh> = {} // of the language; English is what the API says

export async function startLanguages(language: Language): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: 'en',
    fallbackLng: 'en',
    resources: { en: { translation: en }, ...(language === 'pseudo' ? { pseudo: { translation: pseudo() } } : {}) },
    keySeparator: false,
    nsSeparator: false,
    interpolation: { escapeValue: false }, // React escapes
  })
  await changeLanguage(language)
}

/** Chinese is loaded when somebody reads it. If that fails, the language stays what it was. */
export async function changeLanguage(language: Language): Promise<void> {
  wanted = language
  const loaded = language === 'zh' ? await import('./zh').catch(() => undefined) : { zh: undefined, componentsZh: componentsEn, codesZh: {} }
  if (!loaded || wanted !== language) return // somebody has chosen another one meanwhile
  if (loaded.zh) i18next.addResourceBundle('zh', 'translation', loaded.zh, true)
  components = loaded.componentsZh
  codes = loaded.codesZh
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  await i18next.changeLanguage(language)
}

/** Returns what the library of components says by itself, such as months and "No data". */
export function useComponentTexts(): Locale {
  useTranslation() // renders again when the language changes
  return components
}

export function useT(): Translate {
  const { t } = useTranslation()
  return t as unknown as Translate
}

/** The text of a key that is made of a value, such as a state; the value itself if there is none. */
export function useNamed(): (prefix: string, value: string) => string {
  const { t, i18n } = useTranslation()
  return (prefix, value) => (i18n.exists(`${prefix}.${value}`) ? t(`${prefix}.${value}`) : value)
}

/** A sentence of the API: English, with a code and arguments for other languages. */
export interface Said {
  code: string
  arguments: Readonly<Record<string, string | number | null>>
  text: string
}

/** Says a sentence of the API in the language of the page; `text` where it has no code that is known. */
export function useSaid(): (said: Said | null | undefined, text?: string | null) => string {
  const named = useNamed()
  return (said, text = null) => {
    const say = said ? (codes as Record<string, ((a: Said['arguments'], state: (name: string | number | null | undefined) => string) => string) | undefined>)[said.code] : undefined
    return said && say ? say(said.arguments, (name) => named('state', String(name ?? ''))) : (text ?? said?.text ?? '')
  }
}
