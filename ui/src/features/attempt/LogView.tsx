/** A log: loaded by ranges, followed at its end, searched in what is loaded. */
import { ArrowDownOutlined, DownloadOutlined } from '@ant-design/icons'
import { useVirtualizer } from '@tanstack/react-virtual'
import { Button, Input, Slider, Switch, Tag } from 'antd'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { ApiProblem } from '@/api/client'
import { Trouble } from '@/entities/marks'
import { useT } from '@/shared/i18n'
import { useKeys } from '@/shared/keys'
import { bytesText } from '@/shared/time/format'
import { Loading } from '@/shared/ui/parts'
import { pieces } from './ansi'
import { useLog } from './useLog'
import { endOf, linesOf, startOf } from './window'

const LINE = 18
const NEAR = 40 // lines from an edge at which more is loaded
const LEVEL = /\b(ERROR|FATAL|CRITICAL|Traceback)\b|\b(WARN(?:ING)?)\b/

interface Props {
  id: number
  byte: number | null
  onByte: (byte: number | null) => void
}

export function LogView({ id, byte, onByte }: Props) {
  const t = useT()
  const [follow, setFollow] = useState(byte === null)
  const [wrap, setWrap] = useState(false)
  const [wanted, setWanted] = useState('')
  const [hit, setHit] = useState(0)
  const { log, error, isLoading, earlier, later, jump } = useLog(id, byte, follow)
  const lines = useMemo(() => linesOf(log), [log])
  const hits = useMemo(() => (wanted ? hitsOf(lines, wanted) : []), [lines, wanted])
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE,
    overscan: 30,
  })
  useAnchor(startOf(log), lines.length, box)
  useEffect(() => {
    if (follow && lines.length) virtual.scrollToIndex(lines.length - 1, { align: 'end' })
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [follow, lines.length])
  useEffect(() => virtual.measure(), [wrap, virtual])

  const seek = (step: number): void => {
    if (!hits.length) return
    const next = (hit + step + hits.length) % hits.length
    setHit(next)
    setFollow(false)
    virtual.scrollToIndex(hits[next] ?? 0, { align: 'center' })
  }
  const toEnd = (): void => {
    setFollow(true)
    onByte(null)
    if (endOf(log) < log.size) jump(-64 * 1024)
  }
  useKeys({
    w: () => setWrap((on) => !on),
    f: () => (follow ? setFollow(false) : toEnd()),
    n: () => seek(1),
    N: () => seek(-1),
    End: toEnd,
  })
  const scrolled = (): void => {
    const items = virtual.getVirtualItems()
    const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0]
    const atEnd = box.current !== null && box.current.scrollHeight - box.current.scrollTop - box.current.clientHeight < LINE
    if (follow && !atEnd && lines.length - last > 5) setFollow(false)
    if (isLoading) return
    if (first < NEAR && startOf(log) > 0) earlier()
    else if (lines.length - last < NEAR && endOf(log) < log.size) later()
  }
  if (error instanceof ApiProblem && !lines.length) return <Trouble error={error} retry={() => jump(-64 * 1024)} />
  return (
    <div className="log">
      <div className="log-bar">
        <Input.Search
          size="small"
          className="log-find"
          placeholder={t('log.find')}
          aria-label={t('log.find')}
          allowClear
          value={wanted}
          onChange={(event) => {
            setWanted(event.target.value)
            setHit(0)
          }}
          onSearch={() => seek(1)}
        />
        {wanted ? <span className="dim">{hits.length ? t('log.hits', { at: hit + 1, count: hits.length }) : t('log.noHits')}</span> : null}
        <span className="grow" />
        <label className="switch">
          <Switch size="small" checked={follow} onChange={(on) => (on ? toEnd() : setFollow(false))} /> {t('log.follow')}
        </label>
        <label className="switch">
          <Switch size="small" checked={wrap} onChange={setWrap} /> {t('log.wrap')}
        </label>
        <Button size="small" type="text" icon={<DownloadOutlined />} href={`/api/v1/task-instances/${id}/log/raw`}>
          {t('log.download')} {log.size ? <span className="dim num">{bytesText(log.size)}</span> : null}
        </Button>
      </div>
      {lines.length ? (
        <div className="log-body">
          <div ref={box} className={wrap ? 'log-lines wrap' : 'log-lines'} onScroll={scrolled} tabIndex={0} role="log" aria-label={t('attempt.log')} aria-live="off">
            <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
              {virtual.getVirtualItems().map((item) => (
                <div
                  key={item.index}
                  ref={wrap ? virtual.measureElement : undefined}
                  data-index={item.index}
                  className={`log-line ${levelOf(lines[item.index] ?? '')} ${hits[hit] === item.index ? 'hit' : ''}`}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  <Line text={lines[item.index] ?? ''} wanted={wanted} />
                </div>
              ))}
            </div>
          </div>
          {log.size > 2 * 64 * 1024 ? (
            <Slider
              className="log-slider"
              vertical
              reverse
              min={0}
              max={log.size}
              value={startOf(log)}
              tooltip={{ formatter: (value) => bytesText(value ?? 0), placement: 'left' }}
              ariaLabelForHandle={t('log.position')}
              onChangeComplete={(value) => {
                setFollow(false)
                onByte(value)
                jump(value)
              }}
            />
          ) : null}
        </div>
      ) : isLoading ? (
        <Loading rows={8} />
      ) : (
        <p className="dim log-empty">{t('log.empty')}</p>
      )}
      <div className="log-foot">
        <span className="num dim">
          {bytesText(startOf(log))}–{bytesText(endOf(log))} / {bytesText(log.size)}
        </span>
        {log.finished && endOf(log) >= log.size ? <span className="dim">{t('log.ended')}</span> : follow ? <Tag color="processing">{t('log.follow')}</Tag> : null}
        <span className="grow" />
        {follow ? null : (
          <Button size="small" icon={<ArrowDownOutlined />} onClick={toEnd}>
            {t('log.end')}
          </Button>
        )}
      </div>
    </div>
  )
}

function Line({ text, wanted }: { text: string; wanted: string }) {
  return pieces(text).map((piece, index) => (
    <span key={index} className={piece.classes || undefined}>
      {wanted ? marked(piece.text, wanted) : piece.text}
    </span>
  ))
}

function marked(text: string, wanted: string) {
  const found: (string | React.JSX.Element)[] = []
  const [low, what] = [text.toLowerCase(), wanted.toLowerCase()]
  let from = 0
  for (let at = low.indexOf(what); at >= 0; at = low.indexOf(what, from)) {
    found.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + what.length)}</mark>)
    from = at + what.length
  }
  found.push(text.slice(from))
  return found
}

function levelOf(line: string): string {
  const match = LEVEL.exec(line)
  return match ? (match[1] ? 'error' : 'warning') : ''
}

function hitsOf(lines: readonly string[], wanted: string): number[] {
  const what = wanted.toLowerCase()
  return lines.flatMap((line, index) => (line.toLowerCase().includes(what) ? [index] : []))
}

/** Keeps what is seen in its place when lines are put before it. */
function useAnchor(start: number, count: number, box: React.RefObject<HTMLDivElement | null>): void {
  const before = useRef({ start, count })
  useLayoutEffect(() => {
    const old = before.current
    before.current = { start, count }
    if (start < old.start && old.count > 0 && count > old.count && box.current) {
      box.current.scrollTop += (count - old.count) * LINE
    }
  }, [start, count, box])
}
