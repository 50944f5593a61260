/** Texts of what an attempt used and why it failed, in English. They come with its drawer. */
export const attemptEn = {
  'attempt.cpu': 'CPU time',
  'attempt.memory': 'Peak memory of one process',
  'attempt.errorLine': 'Error line',
  'attempt.fingerprint': 'Fingerprint',
} as const

export type AttemptKey = keyof typeof attemptEn
