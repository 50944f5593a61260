/** Adds the texts of a run to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { runEn } from './en'
import { runZh } from './zh'

addTexts(runEn, runZh)
