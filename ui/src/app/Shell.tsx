/** What stands around every page: navigation, project, settings, whether it is live. */
import {
  ApartmentOutlined, BarsOutlined, BellOutlined, BgColorsOutlined, CalendarOutlined, ClusterOutlined, DatabaseOutlined, FileTextOutlined, FolderOutlined,
  LineChartOutlined, MenuOutlined, QuestionCircleOutlined, SearchOutlined, SettingOutlined, TeamOutlined, UserOutlined,
} from '@ant-design/icons'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useLocation, useNavigate } from '@tanstack/react-router'
import { Button, Drawer, Dropdown, Select, Tooltip, type MenuProps } from 'antd'
import { lazy, Suspense, useEffect, useMemo, useState, type ReactNode } from 'react'
import { api, take } from '@/api/client'
import { Trouble } from '@/entities/marks'
import { me as meOf, projects as projectsOf } from '@/entities/queries'
import { restartLive, useLive } from '@/live/live'
import { useT, type TextKey } from '@/shared/i18n'
import { useKeys } from '@/shared/keys'
import logo from '@/shared/logo.svg'
import { changeSettings, useSettings, type Settings } from '@/shared/settings'
import { clockText } from '@/shared/time/format'
import { useZone } from '@/shared/time/Time'
import { useWidth } from '@/shared/ui/DataTable'
import { Boundary } from '@/shared/ui/parts'

// They come when somebody asks for them.
const Help = lazy(async () => ({ default: (await import('./Help')).Help }))
const Palette = lazy(async () => ({ default: (await import('./Palette')).Palette }))

const PAGES = [
  { to: '/today', text: 'nav.today', icon: <CalendarOutlined />, key: 't' },
  { to: '/workflows', text: 'nav.workflows', icon: <ApartmentOutlined />, key: 'w' },
  { to: '/runs', text: 'nav.runs', icon: <BarsOutlined />, key: 'r' },
  { to: '/alerts', text: 'nav.alerts', icon: <BellOutlined />, key: 'l' },
  { to: '/insight', text: 'nav.insight', icon: <LineChartOutlined />, key: 'i' },
  { to: '/projects', text: 'nav.projects', icon: <FolderOutlined />, key: 'p' },
  { to: '/cluster', text: 'nav.cluster', icon: <ClusterOutlined />, key: 'c' },
] as const

const ADMIN = { to: '/admin', text: 'nav.admin', icon: <TeamOutlined />, key: 'a' } as const

const IN_PROJECT = [
  { to: '/projects/$project/resources', end: '/resources', text: 'nav.resources', icon: <FileTextOutlined /> },
  { to: '/projects/$project/data-sources', end: '/data-sources', text: 'nav.sources', icon: <DatabaseOutlined /> },
  { to: '/projects/$project/settings', end: '/settings', text: 'nav.settings', icon: <SettingOutlined /> },
] as const

export function Shell({ children }: { children: ReactNode }) {
  const t = useT()
  const navigate = useNavigate()
  const width = useWidth()
  const { pathname } = useLocation()
  const [isPalette, setPalette] = useState(false)
  const [isHelp, setHelp] = useState(false)
  const [isMenu, setMenu] = useState(false)
  const isNarrow = width < 760
  useSignedOut()
  useEffect(() => setMenu(false), [pathname])
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      setPalette(true)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  const project = useProject()
  const { data: who } = useQuery(meOf)
  useKeys(
    useMemo(
      () => ({
        '?': () => setHelp(true),
        '/': () => document.querySelector<HTMLInputElement>('[data-search] input, input[data-search]')?.focus(),
        j: () => document.querySelector<HTMLElement>('[data-rows]')?.focus(),
        ...Object.fromEntries(PAGES.map((page) => [`g ${page.key}`, () => void navigate({ to: page.to, search: project ? { project } : {} })])),
      }),
      [navigate, project],
    ),
  )
  const navigation = (
    <nav aria-label={t('nav.main')} className="nav">
      {PAGES.map((page) => (
        <Link key={page.to} to={page.to} search={project ? { project } : {}} className={isUnder(pathname, page.to) ? 'nav-item here' : 'nav-item'} activeOptions={{ exact: true }} aria-current={isUnder(pathname, page.to) ? 'page' : undefined}>
          <span className="nav-icon" aria-hidden>{page.icon}</span>
          <span className="nav-text">{t(page.text)}</span>
        </Link>
      ))}
      {who?.is_admin ? (
        <Link to={ADMIN.to} className={isUnder(pathname, ADMIN.to) ? 'nav-item here' : 'nav-item'} aria-current={isUnder(pathname, ADMIN.to) ? 'page' : undefined}>
          <span className="nav-icon" aria-hidden>{ADMIN.icon}</span>
          <span className="nav-text">{t(ADMIN.text)}</span>
        </Link>
      ) : null}
      {project ? (
        <div className="nav-group" role="group" aria-label={t('nav.project', { name: project })}>
          <span className="nav-title nav-text cut">{project}</span>
          {IN_PROJECT.map((page) => (
            <Link key={page.to} to={page.to} params={{ project }} className={pathname.endsWith(page.end) ? 'nav-item here' : 'nav-item'} aria-current={pathname.endsWith(page.end) ? 'page' : undefined} title={t(page.text)}>
              <span className="nav-icon" aria-hidden>{page.icon}</span>
              <span className="nav-text">{t(page.text)}</span>
            </Link>
          ))}
        </div>
      ) : null}
    </nav>
  )
  return (
    <div className={isNarrow ? 'shell narrow' : width < 1100 ? 'shell folded' : 'shell'}>
      <a className="skip" href="#content">{t('nav.skip')}</a>
      {isNarrow ? null : (
        <aside className="side">
          <Link to="/today" className="brand"><img src={logo} alt="" width={26} height={26} /><span className="nav-text">Shoal</span></Link>
          {navigation}
          <span className="grow" />
          <Live />
        </aside>
      )}
      <div className="main">
        <header className="top">
          {isNarrow ? <Button type="text" icon={<MenuOutlined />} aria-label={t('nav.menu')} onClick={() => setMenu(true)} /> : null}
          <ProjectSwitch />
          <span className="grow" />
          <button type="button" className="search-button" onClick={() => setPalette(true)} {...(isNarrow ? { 'aria-label': t('shell.search') } : {})}>
            <SearchOutlined aria-hidden />
            {isNarrow ? null : <><span>{t('shell.search')}</span><kbd>Ctrl K</kbd></>}
          </button>
          <SettingsMenu />
          <Tooltip title={t('shell.help')}><Button className="wide-only" type="text" icon={<QuestionCircleOutlined />} aria-label={t('shell.help')} onClick={() => setHelp(true)} /></Tooltip>
          <AccountMenu />
        </header>
        {isNarrow ? <Live isBar /> : null}
        <main id="content" className="content" tabIndex={-1}>
          <Boundary key={pathname} fallback={(error) => <Trouble error={error} retry={() => location.reload()} />}>{children}</Boundary>
        </main>
      </div>
      {isNarrow ? <Drawer open={isMenu} placement="left" size={240} onClose={() => setMenu(false)} title="Shoal">{navigation}</Drawer> : null}
      <Suspense fallback={null}>
        {isPalette ? <Palette pages={who?.is_admin ? [...PAGES, ADMIN] : PAGES} onClose={() => setPalette(false)} /> : null}
        {isHelp ? <Help onClose={() => setHelp(false)} /> : null}
      </Suspense>
    </div>
  )
}

function isUnder(path: string, page: string): boolean {
  if (page === '/workflows' && path.includes('/workflows/')) return true
  if (page === '/projects') return path === '/projects'
  return path === page || path.startsWith(`${page}/`)
}

/** Returns the project that the address chooses. */
function useProject(): string | undefined {
  const { search, pathname } = useLocation()
  const inPath = /^\/projects\/([^/]+)\/(?:settings|resources|data-sources)$/.exec(pathname)?.[1]
  return inPath ? decodeURIComponent(inPath) : (search as { project?: string }).project
}

function ProjectSwitch() {
  const t = useT()
  const navigate = useNavigate()
  const { pathname } = useLocation()
  const { data } = useQuery(projectsOf)
  const project = useProject()
  const hasFilter = ['/today', '/workflows', '/runs', '/insight'].includes(pathname)
  const choose = (next: string | undefined): void => {
    if (hasFilter) void navigate({ to: '.', search: (old: Record<string, unknown>) => ({ ...old, project: next }) } as never)
    // Alerts that are open, and filters, are those of the other project.
    else void navigate({ to: pathname === '/alerts' ? pathname : '/workflows', search: next ? { project: next } : {} })
  }
  return (
    <Select
      className="project-switch"
      variant="filled"
      showSearch
      allowClear
      aria-label={t('shell.project')}
      placeholder={t('shell.allProjects')}
      value={project ?? null}
      onChange={(value: string | null | undefined) => choose(value ?? undefined)}
      options={(data?.items ?? []).map((one) => ({ value: one.name, label: one.name }))}
      popupMatchSelectWidth={220}
    />
  )
}

function SettingsMenu() {
  const t = useT()
  const { theme, language, zone } = useSettings()
  const browser = Intl.DateTimeFormat().resolvedOptions().timeZone
  const of = <K extends keyof Settings>(name: K, values: readonly [Settings[K] & string, string][]): NonNullable<MenuProps['items']> =>
    values.map(([value, label]) => ({ key: `${name}:${value}`, label }))
  const items: MenuProps['items'] = [
    { type: 'group', label: t('shell.theme'), children: of('theme', (['light', 'dark', 'system'] as const).map((one) => [one, t(`shell.theme.${one}` as TextKey)])) },
    { type: 'group', label: t('shell.language'), children: of('language', [['en', 'English'], ['zh', '简体中文']]) },
    { type: 'group', label: t('shell.zone'), children: of('zone', [['browser', t('shell.zone.browser', { zone: browser })], ['workflow', t('shell.zone.workflow')], ['utc', t('shell.zone.utc')]]) },
  ]
  const change: MenuProps['onClick'] = ({ key }) => {
    const [name, value] = key.split(':')
    if (name) changeSettings({ [name]: value })
  }
  return (
    <Dropdown trigger={['click']} menu={{ items, selectable: true, selectedKeys: [`theme:${theme}`, `language:${language}`, `zone:${zone}`], onClick: change }}>
      <Button type="text" icon={<BgColorsOutlined />} aria-label={`${t('shell.theme')}, ${t('shell.language')}, ${t('shell.zone')}`} />
    </Dropdown>
  )
}

function AccountMenu() {
  const t = useT()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const { data: who } = useQuery(meOf)
  const signOut = async (): Promise<void> => {
    await take(api.POST('/api/v1/logout')).catch(() => undefined) // over already is as good
    queries.clear()
    restartLive()
    await navigate({ to: '/login' })
  }
  const isUser = who?.kind === 'USER'
  const items: MenuProps['items'] = [
    { key: 'who', disabled: true, label: <span className="who"><strong>{who?.name}</strong><br />{who?.is_admin ? t('shell.admin') : who?.roles.map((one) => `${one.project}: ${one.role}`).join(', ')}</span> },
    { key: 'account', label: t('nav.account') },
    ...(isUser ? [{ key: 'password', label: t('shell.changePassword') }] : []),
    { key: 'out', label: t('shell.signOut') },
  ]
  return (
    <Dropdown trigger={['click']} menu={{ items, onClick: ({ key }) => (key === 'out' ? void signOut() : void navigate({ to: key === 'account' ? '/account' : '/password' })) }}>
      <Button type="text" icon={<UserOutlined />} aria-label={t('shell.account')} />
    </Dropdown>
  )
}

function Live({ isBar = false }: { isBar?: boolean }) {
  const t = useT()
  const { state, since } = useLive()
  const { language } = useSettings()
  const zone = useZone()
  if (isBar && (state === 'live' || state === 'connecting')) return null
  const text = t(`live.${state}`, { time: `${clockText(new Date(since).toISOString(), zone, language)} (${zone})` })
  return (
    <div className={`live live-${state} ${isBar ? 'bar' : ''}`} role="status" data-live={state} title={text}>
      <span className="live-dot" aria-hidden />
      <span className="nav-text">{text}</span>
    </div>
  )
}

/** Goes to the sign-in when the session is over, and comes back to the same place. */
function useSignedOut(): void {
  const { state } = useLive()
  const navigate = useNavigate()
  const { href } = useLocation()
  const queries = useQueryClient()
  useEffect(() => {
    if (state !== 'signed-out') return
    queries.removeQueries({ queryKey: meOf.queryKey })
    void queries
      .fetchQuery(meOf)
      .then(() => restartLive()) // signed in meanwhile, in another tab
      .catch(() => navigate({ to: '/login', search: { to: href } }))
    // The place is that of the moment it ends.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [state])
}
