/** The look of the component library, from the same colours as ours (`app.css`). */
import { theme, type ThemeConfig } from 'antd'
import { useEffect, useState } from 'react'
import { useSettings } from '@/shared/settings'

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"

/** Returns whether the page is dark now, and keeps the document's mark for it. */
export function useDark(): boolean {
  const { theme: wanted } = useSettings()
  const [isSystemDark, setSystemDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches)
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)')
    const tell = (): void => setSystemDark(query.matches)
    query.addEventListener('change', tell)
    return () => query.removeEventListener('change', tell)
  }, [])
  const isDark = wanted === 'dark' || (wanted === 'system' && isSystemDark)
  useEffect(() => {
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
  }, [isDark])
  return isDark
}

export function themeOf(isDark: boolean): ThemeConfig {
  const accent = isDark ? '#4fc3cd' : '#0f6670'
  return {
    algorithm: isDark ? theme.darkAlgorithm : theme.defaultAlgorithm,
    token: {
      fontFamily: FONT,
      fontSize: 13,
      borderRadius: 6,
      controlHeight: 32,
      colorPrimary: accent,
      colorLink: accent,
      colorInfo: isDark ? '#6ea8fe' : '#0a58ca',
      colorSuccessBg: isDark ? '#11281a' : '#e9f5ee',
      colorSuccessBorder: isDark ? '#2b6a41' : '#8cc7a2',
      colorSuccess: isDark ? '#4ac26b' : '#1a7340',
      colorError: isDark ? '#ff7b72' : '#c4212e',
      colorWarning: isDark ? '#e3a13a' : '#9a5b00',
      colorText: isDark ? '#e6ebf0' : '#1b242c',
      colorTextSecondary: isDark ? '#a3aeb9' : '#56616c',
      colorTextDescription: isDark ? '#a3aeb9' : '#56616c',
      colorTextPlaceholder: isDark ? '#929eaa' : '#626d78',
      colorTextDisabled: isDark ? '#8994a0' : '#6b7580',
      colorBgContainer: isDark ? '#161c23' : '#ffffff',
      colorBgElevated: isDark ? '#1c232b' : '#ffffff',
      colorBgLayout: isDark ? '#0f1419' : '#f5f7f8',
      colorBorder: isDark ? '#3a444f' : '#cfd6dc',
      colorBorderSecondary: isDark ? '#262f38' : '#e4e9ed',
      // Without it nothing waits for the end of a motion that the style sheet has taken away.
      motion: !matchMedia('(prefers-reduced-motion: reduce)').matches,
      motionDurationFast: '0.08s',
      motionDurationMid: '0.1s',
      motionDurationSlow: '0.12s',
      wireframe: false,
    },
    components: {
      Button: { primaryColor: isDark ? '#06262a' : '#ffffff', primaryShadow: 'none', defaultShadow: 'none', dangerShadow: 'none' },
      Tabs: { horizontalItemGutter: 24, horizontalMargin: '0 0 12px 0' },
    },
  }
}
