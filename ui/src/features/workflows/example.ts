/** A small workflow to begin with. It needs nothing but a shell, and shows values on their way. */
export function exampleText(name: string): string {
  return `# Three tasks in a row: look at the log of each, then change something and publish again.
name: ${name}
description: A first workflow
parameters:
  day: $[yyyy-MM-dd-1]          # the day before the logical time

tasks:
  - name: fetch
    type: SHELL
    params:
      script: |
        echo "fetching $day"
        echo "rows=42" >> "$SHOAL_OUTPUT"

  - name: check
    type: SHELL
    depends_on: [fetch]
    retries: 2
    params:
      script: |
        echo "$rows rows"
        test "$rows" -gt 0

  - name: report
    type: SHELL
    depends_on: [check]
    params:
      script: echo "$day has $rows rows"
`
}
