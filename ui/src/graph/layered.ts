/**
 * Where the tasks of a graph stand: layers from left to right, few crossings, straight edges.
 *
 * Longest-path layers; long edges pass through invisible nodes, one in each layer; median sweeps
 * order the layers; least-squares coordinates (pool adjacent violators) keep neighbours level.
 * Pure and deterministic; O(edges × layers) at worst, since long edges are cut.
 */
export interface GraphTask {
  name: string
  dependsOn: readonly string[]
}

export interface Placed {
  name: string
  x: number
  y: number
  layer: number
}

export interface Sizes {
  width: number
  height: number
  gapX: number
  gapY: number
}

export const SIZES: Sizes = { width: 208, height: 48, gapX: 64, gapY: 20 }

interface Node {
  name: string | null // null: a bend of a long edge
  layer: number
  order: number
  y: number
  before: Node[]
  after: Node[]
}

const SWEEPS = 6
const MOST_BENDS = 20_000 // beyond, long edges are not followed: the picture is not a help any more

/** Returns the places in the order of `tasks`. Edges to tasks that are not there count nothing. */
export function layered(tasks: readonly GraphTask[], sizes: Sizes = SIZES): Placed[] {
  const nodes = nodesOf(tasks)
  const layers = layersOf(nodes)
  untangle(layers)
  for (const layer of layers) layer.forEach((node, index) => (node.y = index))
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0
    for (const layer of down ? layers : layers.toReversed()) settle(layer, down)
  }
  const top = Math.min(0, ...layers.map((layer) => layer[0]?.y ?? 0))
  const column = sizes.width + sizes.gapX
  const row = sizes.height + sizes.gapY
  return tasks.map((task) => {
    const node = nodes.get(task.name)
    if (!node) throw new Error(task.name)
    const y = Math.round((node.y - top) * row)
    return { name: task.name, x: node.layer * column, y, layer: node.layer }
  })
}

function nodesOf(tasks: readonly GraphTask[]): Map<string, Node> {
  const nodes = new Map<string, Node>()
  for (const { name } of tasks) {
    nodes.set(name, { name, layer: -1, order: 0, y: 0, before: [], after: [] })
  }
  for (const task of tasks) {
    const node = nodes.get(task.name)
    for (const name of new Set(task.dependsOn)) {
      const other = nodes.get(name)
      if (!node || !other) continue
      node.before.push(other)
      other.after.push(node)
    }
  }
  // Kahn: a task's layer is one behind the last of those it waits for. Cycles are left at 0.
  const open = new Map([...nodes.values()].map((node) => [node, node.before.length]))
  const ready = [...nodes.values()].filter((node) => node.before.length === 0)
  for (const node of ready) {
    node.layer = Math.max(-1, ...node.before.map((other) => other.layer)) + 1
    for (const next of node.after) {
      const left = (open.get(next) ?? 0) - 1
      open.set(next, left)
      if (left === 0) ready.push(next)
    }
  }
  for (const node of nodes.values()) node.layer = Math.max(0, node.layer)
  return nodes
}

function layersOf(nodes: ReadonlyMap<string, Node>): Node[][] {
  const layers: Node[][] = []
  const put = (node: Node): void => {
    const layer = (layers[node.layer] ??= [])
    node.order = layer.length
    layer.push(node)
  }
  for (const node of nodes.values()) put(node)
  let bends = 0
  for (const node of nodes.values()) {
    for (const next of [...node.after]) {
      const length = next.layer - node.layer
      if (length < 2 || bends + length > MOST_BENDS) continue
      bends += length - 1
      bend(node, next, put)
    }
  }
  return Array.from(layers, (layer) => layer ?? [])
}

/** Replaces an edge by a chain through all layers between. */
function bend(from: Node, to: Node, put: (node: Node) => void): void {
  from.after.splice(from.after.indexOf(to), 1)
  to.before.splice(to.before.indexOf(from), 1)
  let last = from
  for (let layer = from.layer + 1; layer < to.layer; layer += 1) {
    const node: Node = { name: null, layer, order: 0, y: 0, before: [last], after: [] }
    last.after.push(node)
    put(node)
    last = node
  }
  last.after.push(to)
  to.before.push(last)
}

/** Orders the layers by some sweeps, and keeps the best that was found: the first may be it. */
function untangle(layers: readonly Node[][]): void {
  const orders = (): number[][] => layers.map((layer) => layer.map((node) => node.order))
  const start = layers.map((layer) => [...layer])
  let best = { crossings: crossingsOf(layers), layers: start, orders: orders() }
  for (let sweep = 0; sweep < SWEEPS && best.crossings > 0; sweep += 1) {
    const down = sweep % 2 === 0
    for (const layer of down ? layers : layers.toReversed()) sortByMedian(layer, layers, down)
    const crossings = crossingsOf(layers)
    if (crossings < best.crossings) best = { crossings, layers: layers.map((layer) => [...layer]), orders: orders() }
  }
  layers.forEach((layer, index) => {
    layer.splice(0, layer.length, ...(best.layers[index] ?? []))
    layer.forEach((node, at) => (node.order = best.orders[index]?.[at] ?? at))
  })
}

/** Returns how many pairs of edges cross, by counting inversions in a Fenwick tree. */
function crossingsOf(layers: readonly (readonly Node[])[]): number {
  let found = 0
  layers.forEach((layer, index) => {
    const size = (layers[index + 1]?.length ?? 0) + 1
    const tree = new Int32Array(size + 1)
    let count = 0
    for (const node of layer) {
      const ends = node.after.filter((next) => next.layer === index + 1).map((next) => next.order)
      for (const end of ends) {
        let before = 0
        for (let at = end + 1; at > 0; at -= at & -at) before += tree[at] ?? 0
        found += count - before
      }
      for (const end of ends) {
        for (let at = end + 1; at <= size; at += at & -at) tree[at] = (tree[at] ?? 0) + 1
        count += 1
      }
    }
  })
  return found
}

function sortByMedian(layer: Node[], layers: readonly (readonly Node[])[], down: boolean): void {
  // Shares of their layers, since the layers have different lengths.
  const share = (node: Node): number => (node.order + 0.5) / (layers[node.layer]?.length ?? 1)
  const keys = new Map(
    layer.map((node) => {
      const [near, far] = down ? [node.before, node.after] : [node.after, node.before]
      const some = near.length ? near : far // what has nothing on one side keeps to the other
      return [node, some.length ? median(some.map(share)) : share(node)]
    }),
  )
  layer.sort((a, b) => (keys.get(a) ?? 0) - (keys.get(b) ?? 0) || a.order - b.order)
  layer.forEach((node, index) => (node.order = index))
}

/** Moves a layer as near to its neighbours as its order and the distance of 1 allow. */
function settle(layer: readonly Node[], down: boolean): void {
  interface Block {
    sum: number
    count: number
  }
  const blocks: Block[] = []
  layer.forEach((node, index) => {
    const near = down ? node.before : node.after
    const wish = near.length ? median(near.map((other) => other.y)) : node.y
    let block: Block = { sum: wish - index, count: 1 }
    for (let last = blocks.at(-1); last && mean(last) > mean(block); last = blocks.at(-1)) {
      blocks.pop()
      block = { sum: last.sum + block.sum, count: last.count + block.count }
    }
    blocks.push(block)
  })
  let index = 0
  for (const block of blocks) {
    for (let left = block.count; left > 0; left -= 1, index += 1) {
      const node = layer[index]
      if (node) node.y = mean(block) + index
    }
  }
}

function mean(block: { sum: number; count: number }): number {
  return block.sum / block.count
}

function median(values: number[]): number {
  values.sort((a, b) => a - b)
  const middle = values.length >> 1
  const high = values[middle] ?? 0
  return values.length % 2 ? high : ((values[middle - 1] ?? high) + high) / 2
}
