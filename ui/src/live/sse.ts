/** Server-sent events out of a stream of text. Pure but for the state of what is unfinished. */
export interface ServerEvent {
  id: string | null
  event: string
  data: string
}

export class SseParser {
  #rest = ''

  /** Takes the next piece of text; returns the events that it completes. */
  feed(text: string): ServerEvent[] {
    const blocks = (this.#rest + text).replaceAll('\r\n', '\n').split('\n\n')
    this.#rest = blocks.pop() ?? ''
    return blocks.map(parse).filter((event) => event !== null)
  }
}

function parse(block: string): ServerEvent | null {
  let id: string | null = null
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue // a comment, or nothing
    const value = line.slice(colon + 1).replace(/^ /, '')
    const field = line.slice(0, colon)
    if (field === 'id') id = value
    else if (field === 'event') event = value
    else if (field === 'data') data.push(value)
  }
  return data.length ? { id, event, data: data.join('\n') } : null
}

/** Reads an SSE response to its end, calling `take` for what each piece holds (often nothing). */
export async function readEvents(
  response: Response,
  take: (events: ServerEvent[]) => void,
): Promise<void> {
  const reader = response.body?.getReader()
  if (!reader) return
  const parser = new SseParser()
  const decoder = new TextDecoder()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    take(parser.feed(decoder.decode(value, { stream: true })))
  }
}
