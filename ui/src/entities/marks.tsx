/** States, findings and errors on the page. */
import { useQuery } from '@tanstack/react-query'
import { Alert, Button, Tooltip, type ButtonProps } from 'antd'
import type { ReactNode } from 'react'
import { ApiProblem } from '@/api/client'
import type { Finding, Me } from '@/api/types'
import { useNamed, useSaid, useT } from '@/shared/i18n'
import { me } from './queries'
import { lookOf } from './states'

export function StateMark({ state, bare = false }: { state: string; bare?: boolean }) {
  return markOf(state, useNamed()('state', state), bare)
}

/** Returns the element of a state; for tables, whose cells are cheaper without a component each. */
export function markOf(state: string, text: string, bare = false): ReactNode {
  const { glyph, tone } = lookOf(state)
  return (
    <span className={`state tone-${tone}`} data-state={state} title={bare ? text : undefined}>
      <span className="glyph" aria-hidden>
        {glyph}
      </span>
      {bare ? <span className="hidden">{text}</span> : text}
    </span>
  )
}

export function Trouble({ error, retry }: { error: Error; retry?: () => void }) {
  const t = useT()
  const problem = error instanceof ApiProblem ? error : null
  const [title, text] =
    problem?.status === 0
      ? [t('error.unreachable'), t('error.unreachable.detail')]
      : problem?.status === 403
        ? [t('error.forbidden'), problem.message || t('error.forbidden.detail')]
        : problem?.status === 404
          ? [t('error.notFound'), problem.message || t('error.notFound.detail')]
          : [problem?.title ?? t('error.unexpected'), error.message]
  const action = retry ? (
    <Button size="small" onClick={retry}>
      {t('common.retry')}
    </Button>
  ) : undefined
  const isQuiet = problem?.status === 0 || problem?.status === 403
  return <Alert type={isQuiet ? 'warning' : 'error'} showIcon title={title} description={text} action={action} />
}

export function Findings({ findings, empty }: { findings: readonly Finding[]; empty: ReactNode }) {
  const said = useSaid()
  if (!findings.length) return <p className="dim">{empty}</p>
  return (
    <ul className="findings">
      {findings.map((finding, index) => (
        <li key={index} className={finding.waits ? 'waits' : undefined}>
          <span className="layer">{finding.layer}</span>
          <span>{said(finding)}</span>
        </li>
      ))}
    </ul>
  )
}

export type Needed = 'run.operate' | 'project.edit' | 'connection.edit' | 'project.manage' | Platform
/** What belongs to no project: administrators alone may do it. */
type Platform = 'cluster.read' | 'cluster.operate' | 'project.create' | 'environment.edit' | 'user.manage' | 'audit.read'
const ROLES: Record<Exclude<Needed, Platform>, readonly string[]> = {
  'run.operate': ['runner', 'writer', 'owner'],
  'project.edit': ['writer', 'owner'],
  'connection.edit': ['writer', 'owner'],
  'project.manage': ['owner'],
}

function isOfProjects(needed: Needed): needed is Exclude<Needed, Platform> {
  return needed in ROLES
}

/** Returns why a person may not do something in a project, or (without one) at all; null: they may. */
export function useRefusal(needed: Needed, project = ''): string | null {
  const refusalOf = useRefusals(needed)
  return refusalOf(project)
}

/** The same for many projects. */
export function useRefusals(needed: Needed): (project: string) => string | null {
  const t = useT()
  const { data } = useQuery(me)
  return (project) => {
    if (!data || may(data, needed, project)) return null
    return isOfProjects(needed) ? t(`may.${needed}`, { project }) : t('may.platform')
  }
}

export function may(who: Me, needed: Needed, project: string): boolean {
  if (who.permissions && !who.permissions.includes(needed)) return false
  if (who.projects && (!isOfProjects(needed) || !who.projects.includes(project))) return false
  if (who.is_admin) return true
  return isOfProjects(needed) && who.roles.some((role) => role.project === project && ROLES[needed].includes(role.role))
}

/** A button that stays where it is when it may not be pressed, and says why. */
export function Act({ refusal, children, ...rest }: ButtonProps & { refusal: string | null }) {
  if (refusal === null) return <Button {...rest}>{children}</Button>
  return (
    <Tooltip title={refusal}>
      <Button {...rest} aria-disabled className={`${rest.className ?? ''} refused`} onClick={(event) => event.preventDefault()}>
        {children}
        <span className="hidden">: {refusal}</span>
      </Button>
    </Tooltip>
  )
}
