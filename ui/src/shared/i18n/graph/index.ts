/** Adds the texts of pictures to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { graphEn } from './en'
import { graphZh } from './zh'

addTexts(graphEn, graphZh)
