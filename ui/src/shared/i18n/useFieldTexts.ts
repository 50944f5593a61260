/** Descriptions of fields in the language of the page: schemas have them in English. */
import { useEffect, useMemo, useState } from 'react'
import type { Property } from '@/shared/schema-form/schema'
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

/** Returns properties with their descriptions in the language of the page. */
export function useTranslated(properties: readonly Property[]): readonly Property[] {
  const texts = useFieldTexts()
  return useMemo(() => properties.map((one) => ({ ...one, description: texts[one.description] ?? one.description })), [properties, texts])
}
