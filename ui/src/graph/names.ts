/** Names that are too long for a box. Pure. */

const LONGEST_NAME = 22

/** Names keep their ends, which tell partitions apart. */
export function shortened(name: string, most = LONGEST_NAME): string {
  if (name.length <= most) return name
  const end = Math.floor((most - 1) / 2)
  return `${name.slice(0, most - 1 - end)}…${name.slice(-end)}`
}
