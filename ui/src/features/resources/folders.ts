/** Paths as folders. Pure. */
import type { Resource } from '@/api/types'

export interface Entry {
  path: string
  name: string
  file: Resource | null // null: a folder
  files: number
  size: number
}

/** Returns what lies directly in a folder: folders first, then files, by name. */
export function entriesOf(files: readonly Resource[], folder: string): Entry[] {
  const start = folder ? `${folder}/` : ''
  const found = new Map<string, Entry>()
  for (const file of files) {
    if (!file.path.startsWith(start)) continue
    const rest = file.path.slice(start.length)
    const slash = rest.indexOf('/')
    const name = slash < 0 ? rest : rest.slice(0, slash)
    const path = start + name
    if (slash < 0) found.set(path, { path, name, file, files: 1, size: file.size })
    else {
      const old = found.get(path) ?? { path, name, file: null, files: 0, size: 0 }
      found.set(path, { ...old, files: old.files + 1, size: old.size + file.size })
    }
  }
  return [...found.values()].sort((a, b) => Number(a.file !== null) - Number(b.file !== null) || a.name.localeCompare(b.name))
}

/** Returns whether the API takes a path. docs/resources.md has the rules. */
export function isPath(path: string): boolean {
  const parts = path.split('/')
  return (
    new TextEncoder().encode(path).length <= 500 &&
    parts.length <= 20 &&
    parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/^[- ]/.test(part) && !/[\\:*?"<>|$@{}\p{Cc}]/u.test(part))
  )
}
