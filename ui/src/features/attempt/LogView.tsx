/** A log: loaded by ranges, followed at its end, searched as a whole by the server. */
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
import { useSearch } from './useSearch'
import { endOf, lineAt, linesOf, startOf } from './window'

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
  const [isRegex, setRegex] = useState(false)
  const [isCase, setCase] = useState(false)
  const [hit, setHit] = useState(-1)
  const found = useSearch(id)
  const { hits } = found
  const { log, error, isLoading, earlier, later, jump } = useLog(id, byte, follow)
  const lines = useMemo(() => linesOf(log), [log])
  const marked = hits[hit] === undefined ? null : lineAt(log, hits[hit].offset)
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

  const show = (index: number): void => {
    const to = hits[index]
    if (!to) return
    setHit(index)
    setFollow(false)
    const line = lineAt(log, to.offset)
    if (line !== null) virtual.scrollToIndex(line, { align: 'center' })
    else {
      onByte(to.offset)
      jump(to.offset)
    }
  }
  const seek = (step: number): void => {
    if (hits.length) show((hit + step + hits.length) % hits.length)
  }
  const find = (): void => {
    if (!wanted) return found.clear()
    setHit(-1)
    found.search({ text: wanted, regex: isRegex, ignoreCase: !isCase })
  }
  // Where a jump has led, the line is looked for when it has come.
  useEffect(() => {
    if (marked !== null) virtual.scrollToIndex(marked, { align: 'center' })
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [hit, marked === null])
  // The first line that is found is shown as soon as it is; others by n and N.
  useEffect(() => {
    if (hit < 0 && hits.length) show(0)
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [hits.length])
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
          placeholder={t('log.search')}
          aria-label={t('log.search')}
          allowClear
          value={wanted}
          loading={found.at !== null}
          onChange={(event) => {
            setWanted(event.target.value)
            if (!event.target.value) found.clear()
          }}
          onSearch={() => (hits.length && found.isDone ? seek(1) : find())}
        />
        <label className="switch"><Switch size="small" checked={isCase} onChange={(on) => { setCase(on); found.clear() }} /> {t('log.case')}</label>
        <label className="switch"><Switch size="small" checked={isRegex} onChange={(on) => { setRegex(on); found.clear() }} /> {t('log.regex')}</label>
        <span className="dim num" role="status" data-hits={found.isDone ? hits.length : undefined}>
          {hits.length ? t('log.hits', { at: hit + 1, count: hits.length }) : found.isDone ? t('log.noHits') : ''}
          {found.at ? ` ${t('log.searching', { done: bytesText(found.at.done), total: bytesText(found.at.size) })}` : ''}
        </span>
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
      {found.error ? <Trouble error={found.error} /> : null}
      {lines.length ? (
        <div className="log-body">
          <div ref={box} className={wrap ? 'log-lines wrap' : 'log-lines'} onScroll={scrolled} tabIndex={0} role="log" aria-label={t('attempt.log')} aria-live="off">
            <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
              {virtual.getVirtualItems().map((item) => (
                <div
                  key={item.index}
                  ref={wrap ? virtual.measureElement : undefined}
                  data-index={item.index}
                  className={`log-line ${levelOf(lines[item.index] ?? '')} ${marked === item.index ? 'hit' : ''}`}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  <Line text={lines[item.index] ?? ''} wanted={isRegex ? '' : wanted} />
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
      {wanted ? highlighted(piece.text, wanted) : piece.text}
    </span>
  ))
}

function highlighted(text: string, wanted: string) {
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
