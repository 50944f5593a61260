/** The addresses: the path names a thing, the search says how one looks at it. */
import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext, createRoute, createRouter, Outlet, redirect, useNavigate,
} from '@tanstack/react-router'
import { lazy, Suspense, useCallback } from 'react'
import { z } from 'zod'
import { ApiProblem } from '@/api/client'
import { Act, useRefusal } from '@/entities/marks'
import { me } from '@/entities/queries'
import { RUN_STATES } from '@/entities/states'
import { TodayPage } from '@/features/today/TodayPage'
import { DATE_STATES } from '@/features/backfills/Counts'
import { useT } from '@/shared/i18n'
import { Loading } from '@/shared/ui/parts'
import { Failed, Missing } from './failures'
import { Shell } from './Shell'

// What draws graphs and shows logs comes when it is opened, as do the forms of the sign-in.
const ProjectsPage = lazy(async () => ({ default: (await import('@/features/projects/ProjectsPage')).ProjectsPage }))
const WorkflowsPage = lazy(async () => ({ default: (await import('@/features/workflows/WorkflowsPage')).WorkflowsPage }))
const RunsPage = lazy(async () => ({ default: (await import('@/features/runs/RunsPage')).RunsPage }))
const BackfillsPage = lazy(async () => ({ default: (await import('@/features/backfills/BackfillList')).BackfillsPage }))
const BackfillList = lazy(async () => ({ default: (await import('@/features/backfills/BackfillList')).BackfillList }))
const LoginPage = lazy(async () => ({ default: (await import('@/features/account/pages')).LoginPage }))
const CodePage = lazy(async () => ({ default: (await import('@/features/account/pages')).CodePage }))
const PasswordPage = lazy(async () => ({ default: (await import('@/features/account/pages')).PasswordPage }))
const RunPage = lazy(async () => ({ default: (await import('@/features/run/RunPage')).RunPage }))
const Attempt = lazy(async () => ({ default: (await import('@/features/attempt/Attempt')).Attempt }))
const WorkflowPage = lazy(async () => ({ default: (await import('@/features/workflow/WorkflowPage')).WorkflowPage }))
const StartDrawer = lazy(async () => ({ default: (await import('@/features/start/StartDrawer')).StartDrawer }))
const PlanDrawer = lazy(async () => ({ default: (await import('@/features/backfills/PlanDrawer')).PlanDrawer }))
const BackfillPage = lazy(async () => ({ default: (await import('@/features/backfills/BackfillPage')).BackfillPage }))
const SettingsPage = lazy(async () => ({ default: (await import('@/features/settings/SettingsPage')).SettingsPage }))
const SourcesPage = lazy(async () => ({ default: (await import('@/features/sources/SourcesPage')).SourcesPage }))
const ResourcesPage = lazy(async () => ({ default: (await import('@/features/resources/ResourcesPage')).ResourcesPage }))
const AdminPage = lazy(async () => ({ default: (await import('@/features/admin/AdminPage')).AdminPage }))
const AccountPage = lazy(async () => ({ default: (await import('@/features/account/AccountPage')).AccountPage }))
const ComparePage = lazy(async () => ({ default: (await import('@/features/compare/ComparePage')).ComparePage }))
const EditorPage = lazy(async () => ({ default: (await import('@/features/editor/EditorPage')).EditorPage }))
const NewWorkflow = lazy(async () => ({ default: (await import('@/features/workflows/NewWorkflow')).NewWorkflow }))
const MapPage = lazy(async () => ({ default: (await import('@/features/map/MapPage')).MapPage }))
const AlertsPage = lazy(async () => ({ default: (await import('@/features/alerts/AlertsPage')).AlertsPage }))
const InsightPage = lazy(async () => ({ default: (await import('@/features/insight/InsightPage')).InsightPage }))
const ClusterPage = lazy(async () => ({ default: (await import('@/features/cluster/ClusterPage')).ClusterPage }))

const opt = <T extends z.ZodType>(type: T) => type.optional().catch(undefined)
const text = opt(z.string())
const number = opt(z.coerce.number().int().min(0))
const inProject = { project: text }
const mapOf = { date: opt(z.iso.date()), hops: opt(z.coerce.number().int().min(0).max(20)) } // What waits for what
const foldOf = { fold: text } // the groups that a picture shows folded, as A,B; without it as the layout says
const startOf = { start: text } // the workflow whose start form is open, as PROJECT/NAME

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: () => <Suspense fallback={null}><Outlet /></Suspense>,
  notFoundComponent: () => <Shell><Missing /></Shell>,
})

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: z.object({ to: text }),
  component: function Login() {
    const { to } = login.useSearch()
    // Only a path of ours: no other site is gone to.
    const next = to?.startsWith('/') && !to.startsWith('//') ? to : '/today'
    return <LoginPage isOver={to !== undefined} next={next} onIn={() => router().history.replace(next)} />
  },
})

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  component: function SignIn() {
    const navigate = useNavigate()
    return <CodePage onIn={() => void navigate({ to: '/today', replace: true })} />
  },
})

const password = createRoute({
  getParentRoute: () => root,
  path: '/password',
  beforeLoad: ({ context }) => whoIs(context.queries),
  component: function Password() {
    const navigate = useNavigate()
    return <PasswordPage onDone={() => void navigate({ to: '/today' })} />
  },
})

/** Everything behind the sign-in. */
const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  beforeLoad: async ({ context, location }) => {
    const who = await whoIs(context.queries, location.href)
    if (who?.must_change_password) throw redirect({ to: '/password' })
  },
  component: () => <Shell><Suspense fallback={<Loading rows={12} />}><Outlet /></Suspense></Shell>,
  errorComponent: ({ error }) => <Shell><Failed error={error instanceof Error ? error : new Error(String(error))} /></Shell>,
})

const index = createRoute({
  getParentRoute: () => inside,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/today', replace: true })
  },
})

const today = createRoute({
  getParentRoute: () => inside,
  path: '/today',
  validateSearch: z.object({ ...inProject, hours: number }),
  component: function Today() {
    const { project, hours } = today.useSearch()
    const navigate = today.useNavigate()
    return <TodayPage project={project} hours={hours} onHours={(value) => void navigate({ search: (old) => ({ ...old, hours: value }), replace: true })} />
  },
})

const projects = createRoute({ getParentRoute: () => inside, path: '/projects', component: ProjectsPage })

const workflows = createRoute({
  getParentRoute: () => inside,
  path: '/workflows',
  validateSearch: z.object({ ...inProject, ...startOf, q: text, sort: opt(z.enum(['failing', '-last_run', 'next_fire'])), new: opt(z.enum(['empty', 'example'])) }),
  component: function Workflows() {
    const search = workflows.useSearch()
    const navigate = workflows.useNavigate()
    const [project, name] = (search.start ?? '').split('/')
    return (
      <>
        <WorkflowsPage
          project={search.project}
          search={search}
          onSearch={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })}
          onOpen={(one, of) => void navigate({ to: '/projects/$project/workflows/$name', params: { project: one, name: of } })}
          onStart={(one, of) => void navigate({ search: (old) => ({ ...old, start: `${one}/${of}` }) })}
          onNew={(what) => void navigate({ search: (old) => ({ ...old, new: what }) })}
        />
        {search.new ? (
          <Suspense fallback={null}>
            <NewWorkflow
              project={search.project}
              begin={search.new}
              onClose={() => void navigate({ search: (old) => ({ ...old, new: undefined }) })}
              onOpen={(one, of) => void navigate({ to: '/projects/$project/workflows/$name/edit', params: { project: one, name: of } })}
            />
          </Suspense>
        ) : null}
        {project && name ? (
          <StartDrawer
            key={search.start}
            project={project}
            name={name}
            onClose={() => void navigate({ search: (old) => ({ ...old, start: undefined }) })}
            onStarted={(id) => void navigate({ to: '/runs/$id', params: { id: String(id) } })}
          />
        ) : null}
      </>
    )
  },
})

const workflow = createRoute({
  getParentRoute: () => inside,
  path: '/projects/$project/workflows/$name',
  validateSearch: z.object({
    tab: opt(z.enum(['graph', 'settings', 'dependencies', 'grid', 'calendar', 'definition', 'runs', 'schedules', 'backfills', 'versions'])),
    version: number,
    sel: text,
    start: opt(z.literal(1)),
    plan: opt(z.literal(1)), // the form of a backfill is open
    year: opt(z.coerce.number().int().min(1970).max(9989)), // of the calendar, with a day that is chosen
    day: opt(z.iso.date()),
    ...mapOf,
    ...foldOf,
  }),
  component: function Workflow() {
    const { project, name } = workflow.useParams()
    const { tab, version, sel, start, plan, year, day, date, hops } = workflow.useSearch()
    const t = useT()
    const refusal = useRefusal('run.operate', project)
    const navigate = workflow.useNavigate()
    const open = (id: number, task?: string): void => void navigate({ to: '/runs/$id', params: { id: String(id) }, search: { task } })
    const openBackfill = (id: number): void => void navigate({ to: '/backfills/$id', params: { id: String(id) } })
    const planning = <Act refusal={refusal} onClick={() => void navigate({ search: (old) => ({ ...old, plan: 1 as const }) })}>{t('backfill.new')}</Act>
    return (
      <>
        <WorkflowPage
          key={`${project}/${name}`}
          project={project}
          name={name}
          tab={tab}
          version={version}
          chosen={sel}
          year={year}
          day={day}
          date={date}
          hops={hops}
          onView={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })}
          onPlan={(date) => void navigate({ search: (old) => ({ ...old, day: date, plan: 1 as const }) })}
          onStart={() => void navigate({ search: (old) => ({ ...old, start: 1 as const }) })}
          onRun={open}
          backfills={<div className="stack"><div className="row">{planning}</div><BackfillList project={project} workflow={name} onOpen={openBackfill} /></div>}
        />
        {plan ? <PlanDrawer project={project} name={name} day={tab === 'calendar' ? day : undefined} onClose={() => void navigate({ search: (old) => ({ ...old, plan: undefined }) })} onStarted={openBackfill} /> : null}
        {start ? <StartDrawer project={project} name={name} onClose={() => void navigate({ search: (old) => ({ ...old, start: undefined }) })} onStarted={open} /> : null}
      </>
    )
  },
})

const editor = createRoute({
  getParentRoute: () => inside,
  path: '/projects/$project/workflows/$name/edit',
  validateSearch: z.object({ view: opt(z.enum(['canvas', 'table', 'code', 'schedules', 'settings'])), sel: text, restore: number }),
  component: function Edit() {
    const { project, name } = editor.useParams()
    const { view, sel, restore } = editor.useSearch()
    const navigate = editor.useNavigate()
    const onView = useCallback((to: object) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true }), [navigate])
    return (
      <EditorPage
        key={`${project}/${name}`}
        project={project}
        name={name}
        view={view}
        chosen={sel}
        restore={restore}
        onView={onView}
        onPublished={() => void navigate({ to: '/projects/$project/workflows/$name', params: { project, name } })}
      />
    )
  },
})

const runs = createRoute({
  getParentRoute: () => inside,
  path: '/runs',
  validateSearch: z.object({ ...inProject, workflow: text, state: opt(z.array(z.enum(RUN_STATES))), text, label: text, since: opt(z.enum(['hour', 'day', 'week'])), backfill: number }),
  component: function Runs() {
    const search = runs.useSearch()
    const navigate = runs.useNavigate()
    return (
      <RunsPage
        project={search.project}
        search={search}
        onSearch={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })}
        onOpen={(id) => void navigate({ to: '/runs/$id', params: { id: String(id) } })}
      />
    )
  },
})

const run = createRoute({
  getParentRoute: () => inside,
  path: '/runs/$id',
  validateSearch: z.object({
    tab: opt(z.enum(['graph', 'gantt', 'tasks', 'baseline', 'parameters', 'events'])),
    task: text,
    attempt: number,
    panel: opt(z.enum(['log', 'script', 'why', 'outputs', 'details', 'changes'])),
    byte: number,
    ...foldOf,
  }),
  component: function Run() {
    const id = Number(run.useParams().id)
    const { tab, task, attempt, panel, byte } = run.useSearch()
    const navigate = run.useNavigate()
    if (!Number.isSafeInteger(id) || id < 1) return <Missing />
    return (
      <RunPage
        key={id}
        id={id}
        tab={tab}
        task={task}
        onTab={(to) => void navigate({ search: (old) => ({ ...old, tab: to }), replace: true })}
        onTask={(to) => void navigate({ search: (old) => ({ tab: old.tab, panel: old.panel, fold: old.fold, task: to }) })}
        onRun={(to) => void navigate({ to: '/runs/$id', params: { id: String(to) } })}
        drawer={(of, actions) =>
          task ? (
            <Attempt
              key={task}
              run={of.id}
              zone={of.timezone}
              name={task}
              attempt={attempt}
              tab={panel}
              byte={byte}
              onChange={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })}
              onClose={() => void navigate({ search: (old) => ({ tab: old.tab, fold: old.fold }) })}
              actions={actions}
            />
          ) : null
        }
      />
    )
  },
})

const backfills = createRoute({
  getParentRoute: () => inside,
  path: '/backfills',
  validateSearch: z.object(inProject),
  component: function Backfills() {
    const navigate = backfills.useNavigate()
    return <BackfillsPage project={backfills.useSearch().project} onOpen={(id) => void navigate({ to: '/backfills/$id', params: { id: String(id) } })} />
  },
})

const backfill = createRoute({
  getParentRoute: () => inside,
  path: '/backfills/$id',
  validateSearch: z.object({ state: opt(z.enum(DATE_STATES)) }),
  component: function Backfill() {
    const id = Number(backfill.useParams().id)
    const { state } = backfill.useSearch()
    const navigate = backfill.useNavigate()
    if (!Number.isSafeInteger(id) || id < 1) return <Missing />
    return (
      <BackfillPage
        key={id}
        id={id}
        state={state}
        onState={(to) => void navigate({ search: { state: to }, replace: true })}
        onRun={(run_) => void navigate({ to: '/runs/$id', params: { id: String(run_) } })}
      />
    )
  },
})

const auditOf = { principal: text, action: text, outcome: opt(z.enum(['done', 'refused'])) }

const projectSettings = createRoute({
  getParentRoute: () => inside,
  path: '/projects/$project/settings',
  validateSearch: z.object({ tab: opt(z.enum(['parameters', 'secrets', 'calendars', 'groups', 'members', 'grants', 'accounts', 'audit'])), ...auditOf }),
  component: function ProjectSettings() {
    const { project } = projectSettings.useParams()
    const { tab, ...audit } = projectSettings.useSearch()
    const navigate = projectSettings.useNavigate()
    return (
      <SettingsPage
        key={project}
        project={project}
        tab={tab}
        onTab={(to) => void navigate({ search: { tab: to }, replace: true })}
        audit={audit}
        onAudit={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })}
      />
    )
  },
})

const dataSources = createRoute({
  getParentRoute: () => inside,
  path: '/projects/$project/data-sources',
  validateSearch: z.object({ open: text }),
  component: function DataSources() {
    const { project } = dataSources.useParams()
    const { open } = dataSources.useSearch()
    const navigate = dataSources.useNavigate()
    return <SourcesPage key={project} project={project} open={open} onOpen={(to) => void navigate({ search: { open: to } })} />
  },
})

const resources = createRoute({
  getParentRoute: () => inside,
  path: '/projects/$project/resources',
  validateSearch: z.object({ folder: text, file: text, version: number, panel: opt(z.enum(['content', 'versions', 'diff'])) }),
  component: function Resources() {
    const { project } = resources.useParams()
    const search = resources.useSearch()
    const navigate = resources.useNavigate()
    return <ResourcesPage key={project} project={project} search={search} onSearch={(to) => void navigate({ search: () => to })} />
  },
})

const admin = createRoute({
  getParentRoute: () => inside,
  path: '/admin',
  validateSearch: z.object({ tab: opt(z.enum(['users', 'groups', 'environments', 'audit'])), ...auditOf }),
  component: function Admin() {
    const { tab, ...audit } = admin.useSearch()
    const navigate = admin.useNavigate()
    return (
      <AdminPage
        tab={tab}
        onTab={(to) => void navigate({ search: { tab: to }, replace: true })}
        audit={audit}
        onAudit={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })}
      />
    )
  },
})

const account = createRoute({
  getParentRoute: () => inside,
  path: '/account',
  validateSearch: z.object({ tab: opt(z.enum(['profile', 'sessions', 'tokens'])) }),
  component: function Account() {
    const { tab } = account.useSearch()
    const navigate = account.useNavigate()
    return <AccountPage tab={tab} onTab={(to) => void navigate({ search: { tab: to }, replace: true })} />
  },
})

const compare = createRoute({
  getParentRoute: () => inside,
  path: '/compare',
  validateSearch: z.object({ a: number, b: number, task: text, tab: opt(z.enum(['tasks', 'graph', 'parameters'])), ...foldOf }),
  component: function Compare() {
    const { a, b, task, tab } = compare.useSearch()
    const navigate = compare.useNavigate()
    if (!a || !b) return <Missing />
    return <ComparePage key={`${a}/${b}`} one={a} other={b} task={task} tab={tab} onView={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })} />
  },
})

const map = createRoute({
  getParentRoute: () => inside,
  path: '/projects/$project/map',
  validateSearch: z.object(mapOf),
  component: function MapRoute() {
    const { project } = map.useParams()
    const view = map.useSearch()
    const navigate = map.useNavigate()
    return <MapPage key={project} project={project} {...view} onView={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })} onRun={(id) => void navigate({ to: '/runs/$id', params: { id: String(id) } })} />
  },
})

const cluster = createRoute({
  getParentRoute: () => inside,
  path: '/cluster',
  validateSearch: z.object({ tab: opt(z.enum(['overview', 'queue', 'takeovers', 'quarantine'])), group: text }),
  component: function ClusterRoute() {
    const search = cluster.useSearch()
    const navigate = cluster.useNavigate()
    return <ClusterPage {...search} onView={(to) => void navigate({ search: (old) => ({ ...old, ...to }), replace: true })} />
  },
})

const alerts = createRoute({
  getParentRoute: () => inside,
  path: '/alerts',
  validateSearch: z.object({
    ...inProject,
    tab: opt(z.enum(['history', 'messages', 'rules', 'receivers', 'channels', 'silences', 'why'])),
    state: opt(z.array(z.enum(['OPEN', 'RESOLVED', 'TOLD']))),
    workflow: text,
    alert: number, // the one that is shown
    sent: opt(z.array(z.enum(['PENDING', 'SENDING', 'SENT', 'FAILED', 'WITHDRAWN', 'SILENCED']))),
    channel: text,
    open: text, // the definition whose form is open
    run: number, // the one that is explained
  }),
  component: function Alerts() {
    const { project, ...search } = alerts.useSearch()
    const navigate = alerts.useNavigate()
    return <AlertsPage project={project} search={search} onSearch={(to, replace) => void navigate({ search: (old) => ({ project: old.project, ...to }), replace })} />
  },
})

const insight = createRoute({
  getParentRoute: () => inside,
  path: '/insight',
  validateSearch: z.object({
    ...inProject,
    tab: opt(z.enum(['overview', 'slower', 'waits', 'failures', 'lateness', 'load', 'cost', 'schedules'])),
    days: opt(z.literal([7, 28, 90])),
    from: opt(z.iso.date()),
    to: opt(z.iso.date()),
    workflow: text, // PROJECT/NAME
    sort: opt(z.enum(['slower', 'waits', 'failures', 'late', 'cost'])),
    by: opt(z.enum(['project', 'workflow', 'task', 'label'])),
    measure: opt(z.enum(['needed_max', 'running_mean', 'running_max', 'waiting_max'])),
    group: text,
    cause: text,
  }),
  component: function Insight() {
    const { project, ...search } = insight.useSearch()
    const navigate = insight.useNavigate()
    return <InsightPage project={project} search={search} onSearch={(to, replace) => void navigate({ search: (old) => ({ project: old.project, ...to }), replace })} />
  },
})

const tree = root.addChildren([
  login, signIn, password,
  inside.addChildren([index, today, projects, workflows, workflow, runs, run, alerts, insight, cluster, map, backfills, backfill, projectSettings, dataSources, resources, admin, account, compare, editor]),
])

/** Returns who is signed in; goes to the sign-in if nobody is. */
async function whoIs(queries: QueryClient, to?: string) {
  try {
    return await queries.ensureQueryData(me)
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 401) {
      throw redirect({ to: '/login', search: { to: to === '/' ? undefined : to } })
    }
    if (error instanceof ApiProblem && error.status === 0) return null // the pages say so
    throw error
  }
}

let made: ReturnType<typeof create> | null = null

function create(queries: QueryClient) {
  return createRouter({ routeTree: tree, context: { queries }, defaultPreload: false, scrollRestoration: true })
}

export function makeRouter(queries: QueryClient) {
  return (made ??= create(queries))
}

function router() {
  if (!made) throw new Error('the router is made first')
  return made
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof create>
  }
}
