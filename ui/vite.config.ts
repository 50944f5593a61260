import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'
import type { Plugin } from 'vite'

// api/shoal/api/pages/ui.py serves this folder, and puts a nonce in the place of the word.
const OUT = '../api/shoal/api/static'
const NONCE = 'SHOAL_CSP_NONCE'

/** Packs what browsers load once and for all, so that the API has nothing to compress. */
function packed(): Plugin {
  return {
    name: 'packed',
    apply: 'build',
    closeBundle() {
      const folder = join(import.meta.dirname, OUT, 'assets')
      for (const name of readdirSync(folder)) {
        if (!/\.(js|css|svg)$/.test(name)) continue
        const content = readFileSync(join(folder, name))
        const params = { [constants.BROTLI_PARAM_QUALITY]: 9 }
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params }))
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }))
      }
    },
  }
}

export default defineConfig({
  plugins: [react(), packed()],
  resolve: { alias: { '@': join(import.meta.dirname, 'src') } },
  html: { cspNonce: NONCE },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1500,
  },
  worker: { format: 'es' },
  // A machine that is busy with other tests takes several times as long.
  test: { environment: 'node', include: ['src/**/*.test.ts'], testTimeout: 60_000 },
})
