/** The stream in a worker that all tabs of the browser share: one connection, however many tabs. */
import { Stream, type Message } from './stream'

const ports = new Set<MessagePort>()
const stream = new Stream((message: Message) => {
  for (const port of ports) port.postMessage(message)
})

addEventListener('connect', (event) => {
  const port = (event as MessageEvent).ports[0]
  if (!port) return
  ports.add(port)
  port.onmessage = ({ data }: MessageEvent<string>) => {
    if (data === 'restart') stream.restart()
    else if (data === 'wake') stream.wake()
    else if (data === 'cut') stream.cut()
    else if (data === 'bye') ports.delete(port)
  }
  port.postMessage(stream.status)
})

stream.start()
