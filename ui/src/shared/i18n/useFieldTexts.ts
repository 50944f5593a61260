/** What fields of task types and data sources mean, in the language of the page: the API says it in English. */
import { useEffect, useState } from 'react'
import { useSettings } from '@/shared/settings'

type Texts = Readonly<Record<string, string>>
const NONE: Texts = {}

/** Returns texts by their English; none while they are English, or not loaded yet. */
export function useFieldTexts(): Texts {
  const { language } = useSettings()
  const [texts, setTexts] = useState(NONE)
  const isChinese = language === 'zh'
  useEffect(() => {
    if (!isChinese) return
    let isGone = false
    void import('./fields.zh').then(
      ({ fieldsZh }) => isGone || setTexts(fieldsZh),
      () => undefined, // they stay English
    )
    return () => {
      isGone = true
    }
  }, [isChinese])
  return isChinese ? texts : NONE
}
