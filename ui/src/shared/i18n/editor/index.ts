/** Adds the texts of the editor to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { editorEn } from './en'
import { editorZh } from './zh'

addTexts(editorEn, editorZh)
