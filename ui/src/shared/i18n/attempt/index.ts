/** Adds the texts of what an attempt used to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { attemptEn } from './en'
import { attemptZh } from './zh'

addTexts(attemptEn, attemptZh)
