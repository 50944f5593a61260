/** Texts of what an attempt used and why it failed, in English. They come with its drawer. */
export const attemptEn = {
  'attempt.cpu': 'Processor time',
  'attempt.memory': 'Largest process',
  'attempt.errorLine': 'Error line',
  'attempt.fingerprint': 'Fingerprint',
} as const

export type AttemptKey = keyof typeof attemptEn
