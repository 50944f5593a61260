/** Texts that come with their pages, beside those of every page. */
import i18next from 'i18next'
import { pseudo } from './pseudo'

type Texts = Readonly<Record<string, string>>

export function addTexts(en: Texts, zh: Texts): void {
  i18next.addResourceBundle('en', 'translation', en, true)
  i18next.addResourceBundle('zh', 'translation', zh, true)
  if (i18next.language === 'pseudo') i18next.addResourceBundle('pseudo', 'translation', pseudo(en), true)
}
