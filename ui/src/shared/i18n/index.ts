/** The languages: English and Chinese. `t` takes the keys that there are, and no others. */
import i18next from 'i18next'
import { initReactI18next, useTranslation } from 'react-i18next'
import type { EditorKey } from './editor/en'
import { en, type Key } from './en'
import { pseudo } from './pseudo'
import { zh } from './zh'

/** `pseudo`: English in brackets, to find texts that are no keys. It is in no menu. */
export type Language = 'en' | 'zh' | 'pseudo'
type Plain<K> = K extends `${infer Stem}_${'one' | 'other'}` ? Stem : K
export type TextKey = Plain<Key | EditorKey> // those of the editor come with it
export type Translate = (key: TextKey, values?: Record<string, string | number>) => string

/** Returns the language of the browser, as far as there is one of ours. */
export function ownLanguage(): Language {
  return navigator.languages[0]?.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export async function startLanguages(language: Language): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: language,
    fallbackLng: 'en',
    resources: { en: { translation: en }, zh: { translation: zh }, ...(language === 'pseudo' ? { pseudo: { translation: pseudo() } } : {}) },
    keySeparator: false,
    nsSeparator: false,
    interpolation: { escapeValue: false }, // React escapes
  })
}

export function changeLanguage(language: Language): void {
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en'
  void i18next.changeLanguage(language)
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
