/** Small PNGs, of 256 colours: a page has few, but for the edges of its letters. */
import { crc32, deflateSync } from 'node:zlib'

const MOST = 256

/** Returns a PNG of pixels (RGBA, row after row). */
export function indexed(pixels, width, height) {
  const counts = new Map()
  const colours = new Uint32Array(width * height)
  for (let at = 0; at < colours.length; at += 1) {
    const colour = (pixels[4 * at] << 16) | (pixels[4 * at + 1] << 8) | pixels[4 * at + 2]
    colours[at] = colour
    counts.set(colour, (counts.get(colour) ?? 0) + 1)
  }
  const palette = paletteOf(counts)
  const places = new Map(palette.map((colour, place) => [colour, place]))
  const rows = Buffer.alloc((width + 1) * height) // each row begins with its filter, which is none
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const colour = colours[y * width + x]
      let place = places.get(colour)
      if (place === undefined) places.set(colour, (place = nearest(palette, colour)))
      rows[y * (width + 1) + 1 + x] = place
    }
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8) // 8 bits, a palette
  const table = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([signature, chunk('IHDR', head), chunk('PLTE', table), chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))])
}

/** Returns the colours that are most frequent, and one of every other hue that there is. */
function paletteOf(counts) {
  const sorted = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour)
  const palette = new Set(sorted.slice(0, MOST / 2))
  const hues = new Set([...palette].map(hue))
  for (const colour of sorted) {
    if (palette.size >= MOST) break
    if (hues.has(hue(colour))) continue
    hues.add(hue(colour))
    palette.add(colour)
  }
  return [...palette]
}

function hue(colour) {
  return colour & 0xf0f0f0
}

function nearest(palette, colour) {
  let [best, least] = [0, Infinity]
  for (const [place, one] of palette.entries()) {
    const far = ((one >> 16) - (colour >> 16)) ** 2 + (((one >> 8) & 255) - ((colour >> 8) & 255)) ** 2 + ((one & 255) - (colour & 255)) ** 2
    if (far < least) [best, least] = [place, far]
  }
  return best
}

function chunk(name, content) {
  const named = Buffer.concat([Buffer.from(name), content])
  const found = Buffer.alloc(named.length + 8)
  found.writeUInt32BE(content.length, 0)
  named.copy(found, 4)
  found.writeUInt32BE(crc32(named), named.length + 4)
  return found
}
