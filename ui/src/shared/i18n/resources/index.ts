/** Adds these texts to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { resourcesEn } from './en'
import { resourcesZh } from './zh'

addTexts(resourcesEn, resourcesZh)
