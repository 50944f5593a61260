/** Adds the texts of Insight to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { insightEn } from './en'
import { insightZh } from './zh'

addTexts(insightEn, insightZh)
