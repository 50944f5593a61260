/** Adds the texts of the editor to those that are there. Importing it is enough. */
import i18next from 'i18next'
import { editorEn } from './en'
import { editorZh } from './zh'

i18next.addResourceBundle('en', 'translation', editorEn, true)
i18next.addResourceBundle('zh', 'translation', editorZh, true)
