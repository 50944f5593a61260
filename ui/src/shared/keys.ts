/** Keys of pages. They do nothing while somebody types, or with Ctrl, Alt or Meta. */
import { useEffect } from 'react'

/** Calls what belongs to a key; `g t` is two keys, one after the other within a second. */
export function useKeys(keys: Readonly<Record<string, (() => void) | undefined>>): void {
  useEffect(() => {
    let first = ''
    let firstAt = 0
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      const both = first && event.timeStamp - firstAt < 1000 ? `${first} ${event.key}` : ''
      first = event.key
      firstAt = event.timeStamp
      const act = (both && keys[both]) || (both.startsWith('g ') ? undefined : keys[event.key])
      if (!act) return
      event.preventDefault()
      act()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [keys])
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable=true]') !== null
}
