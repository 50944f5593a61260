/** Contents of files: fetched as text, sent with progress. */
import { ApiProblem } from '@/api/client'
import type { Problem, Resource } from '@/api/types'

export const MOST_TEXT = 1_000_000 // bytes that are shown and edited

/** Returns the address of a content; without a version that of the newest. */
export function contentUrl(project: string, path: string, version?: number): string {
  const way = path.split('/').map(encodeURIComponent).join('/')
  return `/api/v1/projects/${encodeURIComponent(project)}/resource-contents/${way}${version === undefined ? '' : `?version=${version}`}`
}

/** Returns a content as text; null: it is none. */
export async function readText(project: string, path: string, version: number): Promise<string | null> {
  const response = await fetch(contentUrl(project, path, version))
  if (!response.ok) throw new ApiProblem(response.status, (await response.json().catch(() => ({}))) as Partial<Problem>)
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await response.arrayBuffer())
    return text.includes('\0') ? null : text
  } catch {
    return null
  }
}

/** Stores a content, telling how much has left; only if `expected` is the newest version (0: none). */
export function store(project: string, path: string, content: Blob, expected: number | null, tell: (share: number) => void, signal?: AbortSignal): Promise<Resource> {
  return new Promise((resolve, reject) => {
    // fetch tells nothing of what it has sent.
    const request = new XMLHttpRequest()
    request.open('PUT', `${contentUrl(project, path)}${expected === null ? '' : `?expected_version=${expected}`}`)
    request.setRequestHeader('Content-Type', 'application/octet-stream')
    request.upload.onprogress = (event) => tell(event.total ? event.loaded / event.total : 0)
    request.onerror = () => reject(new ApiProblem(0, {}))
    request.onabort = () => reject(new DOMException('', 'AbortError'))
    request.onload = () => {
      let body: unknown = {}
      try {
        body = JSON.parse(request.responseText)
      } catch {
        // An answer that is none of the API's.
      }
      if (request.status < 300) resolve(body as Resource)
      else reject(new ApiProblem(request.status, body as Partial<Problem>))
    }
    signal?.addEventListener('abort', () => request.abort())
    request.send(content)
  })
}
