/** What a person has chosen for this browser: theme, language, zone, project. */
import { useSyncExternalStore } from 'react'
import { ownLanguage, type Language } from './i18n'

export interface Settings {
  theme: 'light' | 'dark' | 'system'
  language: Language
  zone: 'workflow' | 'utc' | 'browser'
  project: string | null
}

const KEY = 'shoal.settings'
const listeners = new Set<() => void>()
let current: Settings = read()

function read(): Settings {
  const standard: Settings = { theme: 'system', language: ownLanguage(), zone: 'browser', project: null }
  try {
    return { ...standard, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Settings>) }
  } catch {
    return standard
  }
}

export function settings(): Settings {
  return current
}

export function changeSettings(changes: Partial<Settings>): void {
  current = { ...current, ...changes }
  localStorage.setItem(KEY, JSON.stringify(current))
  for (const tell of listeners) tell()
}

export function useSettings(): Settings {
  return useSyncExternalStore(subscribe, settings)
}

function subscribe(tell: () => void): () => void {
  listeners.add(tell)
  return () => listeners.delete(tell)
}
