/** Which secrets a task is given by its parameters. Pure. */
import { isPlain } from './parse'

const REFERENCE = /^\$\{secret\.([A-Za-z0-9_.-]+)\}$/

/** Returns the parameters of a task that are a secret each, by name: the secret. */
export function secretsOf(parameters: unknown): Record<string, string> {
  if (!isPlain(parameters)) return {}
  return Object.fromEntries(Object.entries(parameters).flatMap(([name, value]): [string, string][] => {
    const secret = typeof value === 'string' ? REFERENCE.exec(value)?.[1] : undefined
    return secret === undefined ? [] : [[name, secret]]
  }))
}

/** Returns the parameters with exactly these secrets: each new one becomes a parameter of its name. */
export function withSecrets(parameters: unknown, wanted: readonly string[]): Record<string, unknown> | undefined {
  const own = isPlain(parameters) ? parameters : {}
  const known = secretsOf(own)
  const kept = Object.fromEntries(Object.entries(own).filter(([name]) => !(name in known) || wanted.includes(known[name] ?? '')))
  for (const secret of wanted) {
    if (Object.values(known).includes(secret)) continue
    const base = secret.replace(/[^A-Za-z0-9_]/g, '_').replace(/^(?=[0-9])/, '_')
    let name = base
    for (let number = 2; name in kept; number += 1) name = `${base}_${number}`
    kept[name] = `\${secret.${secret}}`
  }
  return Object.keys(kept).length ? kept : undefined
}
