/** Task types as editors know them: groups of the palette, what a new task begins with. Pure. */
import type { TaskType } from '@/api/types'
import type { Plain } from '@/definition/parse'
import type { TextKey } from '@/shared/i18n'
import type { CodeLanguage } from '@/shared/code/languages'
import type { Schema } from '@/shared/schema-form/schema'

export interface PaletteGroup {
  title: TextKey
  types: readonly string[]
}

const GROUPS: readonly PaletteGroup[] = [
  { title: 'palette.programs', types: ['SHELL', 'PYTHON', 'SPARK', 'FLINK', 'MR', 'SSH', 'CONTAINER', 'HTTP'] },
  { title: 'palette.data', types: ['SQL', 'PROCEDURE', 'DATA_QUALITY'] },
  { title: 'palette.flow', types: ['SWITCH', 'CONDITIONS', 'SUB_WORKFLOW', 'MAP'] },
  { title: 'palette.waiting', types: ['DEPENDENT', 'WAIT_FILE', 'WAIT_SQL'] },
]

/** Returns the installed types by groups; those of other packages come last. */
export function grouped(types: readonly TaskType[]): PaletteGroup[] {
  const names = types.map((one) => one.name)
  const known = new Set(GROUPS.flatMap((group) => group.types))
  const groups = GROUPS.map((group) => ({ ...group, types: group.types.filter((name) => names.includes(name)) }))
  return [...groups, { title: 'palette.others' as const, types: names.filter((name) => !known.has(name)) }].filter((group) => group.types.length)
}

const SCRIPTS: Readonly<Record<string, string>> = { SHELL: 'echo "hello"\n', SSH: 'echo "hello"\n', PYTHON: 'print("hello")\n', SPARK: 'print("hello")\n', SQL: 'SELECT 1' }

/** Returns the params that a new task of a type begins with: what must be given, empty where only people know. */
export function starterOf(type: string, schema: Schema | undefined): Plain {
  const properties = schema?.properties ?? {}
  const script = SCRIPTS[type]
  const params: Plain = {}
  for (const name of schema?.required ?? []) params[name] = emptyOf(properties[name], schema)
  if (script !== undefined) params['script' in properties ? 'script' : 'sql'] = script
  return params
}

function emptyOf(property: Schema | undefined, root: Schema | undefined): unknown {
  const name = property?.$ref?.split('/').at(-1)
  const own = name ? root?.$defs?.[name] : property
  if (own?.enum?.length) return own.enum[0]
  if (own?.type === 'array' || own?.anyOf?.[0]?.type === 'array') return []
  return own?.type === 'object' ? {} : ''
}

const LANGUAGES: Readonly<Record<string, CodeLanguage>> = { SHELL: 'shell', SSH: 'shell', PYTHON: 'python', SPARK: 'python', SQL: 'sql', WAIT_SQL: 'sql', DATA_QUALITY: 'sql', PROCEDURE: 'sql' }

/** The language of the programs of a type. */
export function scriptLanguage(type: string): CodeLanguage {
  return LANGUAGES[type] ?? 'text'
}
