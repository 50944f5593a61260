/** Small parts of every page: head, tabs, empty states, code. */
import { Component, type ReactNode } from 'react'
import { Skeleton } from 'antd'

export function PageHead({ title, crumbs, mark, children }: { title: ReactNode; crumbs?: ReactNode; mark?: ReactNode; children?: ReactNode }) {
  return (
    <header className="page-head">
      <div className="page-title">
        {crumbs ? <div className="crumbs">{crumbs}</div> : null}
        <div className="page-name">
          <h1>{title}</h1>
          {mark}
        </div>
      </div>
      {children ? <div className="page-actions">{children}</div> : null}
    </header>
  )
}

export function Panel({ title, aside, children, flush = false }: { title?: ReactNode; aside?: ReactNode; children: ReactNode; flush?: boolean }) {
  return (
    <section className={flush ? 'panel flush' : 'panel'}>
      {title ? (
        <div className="panel-head">
          <h2>{title}</h2>
          {aside}
        </div>
      ) : null}
      {children}
    </section>
  )
}

export function Empty({ title, children, action }: { title: ReactNode; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <svg width="72" height="48" viewBox="0 0 72 48" aria-hidden className="empty-fish">
        <path d="M8 16c6-7 15-7 21 0-6 7-15 7-21 0zm-4-5 6 5-6 5z" />
        <path d="M34 26c6-7 15-7 21 0-6 7-15 7-21 0zm-4-5 6 5-6 5z" opacity=".6" />
        <path d="M16 38c6-7 15-7 21 0-6 7-15 7-21 0zm-4-5 6 5-6 5z" opacity=".35" />
      </svg>
      <p className="empty-title">{title}</p>
      {children ? <div className="empty-text">{children}</div> : null}
      {action}
    </div>
  )
}

export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div className="loading" aria-busy>
      <Skeleton active title={false} paragraph={{ rows, width: '100%' }} />
    </div>
  )
}

export function Code({ text }: { text: string }) {
  return (
    <pre className="code" tabIndex={0}>
      <code>{text}</code>
    </pre>
  )
}

export function Facts({ items }: { items: readonly [ReactNode, ReactNode][] }) {
  return (
    <dl className="facts">
      {items.map(([name, value], index) => (
        <div key={index}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Keeps an error of one panel from taking the page with it. */
export class Boundary extends Component<{ children: ReactNode; fallback: (error: Error) => ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null }

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error }
  }

  override render(): ReactNode {
    return this.state.error ? this.props.fallback(this.state.error) : this.props.children
  }
}
