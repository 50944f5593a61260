/** Texts of what an attempt used and why it failed, in Chinese. */
import type { AttemptKey } from './en'

export const attemptZh: Record<AttemptKey, string> = {
  'attempt.cpu': '处理器时间',
  'attempt.memory': '最大进程内存',
  'attempt.errorLine': '错误行',
  'attempt.fingerprint': '错误指纹',
}
