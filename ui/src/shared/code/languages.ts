/** The languages that people write in definitions. */
import { python } from '@codemirror/lang-python'
import { sql } from '@codemirror/lang-sql'
import { yaml } from '@codemirror/lang-yaml'
import { StreamLanguage } from '@codemirror/language'
import { shell } from '@codemirror/legacy-modes/mode/shell'
import type { Extension } from '@codemirror/state'

export type CodeLanguage = 'yaml' | 'shell' | 'python' | 'sql' | 'text'

export function languageOf(name: CodeLanguage): Extension {
  switch (name) {
    case 'yaml':
      return yaml()
    case 'python':
      return python()
    case 'sql':
      return sql()
    case 'shell':
      return StreamLanguage.define(shell)
    default:
      return []
  }
}
