/** Two texts as one list of lines, with what was added and what was removed. */
import { useMemo } from 'react'
import { diffLines, nearChanges } from '../diff'

const MARKS = { same: ' ', added: '+', removed: '−', skipped: '⋯' }

export function Diff({ before, after, same }: { before: string; after: string; same: string }) {
  const lines = useMemo(() => nearChanges(diffLines(before, after)), [before, after])
  if (!lines.length) return <p className="dim">{same}</p>
  return (
    <pre className="diff" tabIndex={0} data-changes={lines.filter((line) => line.kind === 'added' || line.kind === 'removed').length}>
      {lines.map((line, index) => (
        <span key={index} className={`diff-line ${line.kind}`}>
          <span className="diff-number" aria-hidden>{line.a ?? ''}</span>
          <span className="diff-number" aria-hidden>{line.b ?? ''}</span>
          <span className="diff-mark">{MARKS[line.kind]}</span>
          <span>{line.kind === 'skipped' ? `⋯ ${line.text}` : line.text}</span>
        </span>
      ))}
    </pre>
  )
}
