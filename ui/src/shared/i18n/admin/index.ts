/** Adds these texts to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { adminEn } from './en'
import { adminZh } from './zh'

addTexts(adminEn, adminZh)
