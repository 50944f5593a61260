/** Adds the texts of the palette and of the list of keys. Importing it is enough. */
import { addTexts } from '../addTexts'
import { helpEn } from './en'
import { helpZh } from './zh'

addTexts(helpEn, helpZh)
