/** Adds the texts of the page of the cluster to those that are there. Importing it is enough. */
import { addTexts } from '../addTexts'
import { clusterEn } from './en'
import { clusterZh } from './zh'

addTexts(clusterEn, clusterZh)
