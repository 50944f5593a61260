/** Where the program begins. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { App as AntApp, ConfigProvider } from 'antd'
import { StrictMode, useEffect } from 'react'
import { createRoot } from 'react-dom/client'
import { isSentAgain, pauseMs } from '@/api/retries'
import { startLive } from '@/live/live'
import { changeLanguage, startLanguages, useComponentTexts } from '@/shared/i18n'
import { settings, useSettings } from '@/shared/settings'
import './app.css'
import { makeRouter } from './router'
import { themeOf, useDark } from './theme'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000, // events say sooner when something has changed
      refetchOnWindowFocus: false,
      retry: isSentAgain,
      retryDelay: pauseMs,
    },
  },
})
const router = makeRouter(queries)
const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce

function Program() {
  const isDark = useDark()
  const { language } = useSettings()
  const locale = useComponentTexts()
  useEffect(() => void changeLanguage(language), [language])
  return (
    <ConfigProvider theme={themeOf(isDark)} locale={locale} button={{ autoInsertSpace: false }} {...(nonce ? { csp: { nonce } } : {})}>
      <AntApp className="app">
        <RouterProvider router={router} />
      </AntApp>
    </ConfigProvider>
  )
}

const root = document.getElementById('root')
if (root) {
  await startLanguages(settings().language)
  startLive(queries)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Program />
      </QueryClientProvider>
    </StrictMode>,
  )
}
