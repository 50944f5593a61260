/** Lengths of time as definitions write them: `30s`, `15m`, `1h30m`. Pure; the API reads the same. */
const UNITS = [['d', 86_400], ['h', 3600], ['m', 60], ['s', 1]] as const
const FORM = /^(?:\d{1,15}(?:\.\d{1,9})?|(?=\d)(?:\d+(?:\.\d+)?d ?)?(?:\d+(?:\.\d+)?h ?)?(?:\d+(?:\.\d+)?m ?)?(?:\d+(?:\.\d+)?s ?)?(?:\d+(?:\.\d+)?ms)?)$/

/** Returns a number of seconds as people write it; days only where nothing is left over: 26h, 2d. */
export function writtenDuration(seconds: number): string {
  let rest = seconds
  const units = seconds % 86_400 ? UNITS.slice(1) : UNITS
  const parts = units.flatMap(([unit, size]) => {
    const count = unit === 's' ? Number(rest.toFixed(3)) : Math.floor(rest / size)
    rest -= count * size
    return count ? [`${count}${unit}`] : []
  })
  return parts.join('') || '0s'
}

/** Says whether a text is a length of time. A number alone is of seconds. */
export function isDuration(text: string): boolean {
  return FORM.test(text.trim())
}
