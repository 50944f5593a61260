/** Adds the texts of alerts to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { alertsEn } from './en'
import { alertsZh } from './zh'

addTexts(alertsEn, alertsZh)
