"""Which workflows wait for which on one day, with their runs."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from shoal.api.schemas.views.dependencies import (
    DependencyEdge,
    DependencyGraphOut,
    DependencyNode,
    DependencyRun,
    DependencyTask,
)
from shoal.api.web.legible import by_id, shown
from shoal.core.access.grants import Grant
from shoal.core.access.judging import Visible
from shoal.core.definition.kinds import LogicKind
from shoal.core.logic.dependency_graph import (
    DependencyGraph,
    Edge,
    Progress,
    Window,
    critical_chain,
    dependency_graph,
    last,
)
from shoal.core.logic.judging import WorkflowName
from shoal.core.runs.records import Instance
from shoal.core.runs.states import FINISHED_WORKFLOW
from shoal.sql import UnitOfWork
from shoal.sql.repositories.authoring.references import Network
from shoal.sql.repositories.overview.recent import Windowed

MOST_WORKFLOWS = 500  # of one answer
RUNS_EACH = 25  # of a workflow in its window; an hourly one has 24 or 25 a day


async def graph_of(
    uow: UnitOfWork,
    project: str,
    workflow: str | None,
    day: date,
    hops: int,
    visible: Visible,
) -> DependencyGraphOut:
    """Return what waits for what around a workflow, or around all of a project with any links.

    The critical chain leads to that workflow, or to the one that ends last.
    """
    network = await uow.references.all(visible)
    roots = [(project, workflow)] if workflow is not None else _connected(network, project)
    network = await _with_zones(uow, network, roots)
    # In a thread: of many workflows it takes a tenth of a second.
    graph = await asyncio.to_thread(
        dependency_graph, network.known, roots, day, hops, MOST_WORKFLOWS
    )
    seen = _Seen(network, graph)
    seen.runs = await uow.recent.runs_within(seen.wanted(), RUNS_EACH + 1)
    allowed = await _allowed(uow, graph.edges)
    nodes = [seen.node(name) for name in graph.windows]
    edges = [seen.edge(edge, edge in allowed) for edge in graph.edges]
    progress = {(n.project, n.workflow): p for n in nodes if (p := _progress(n.runs)) is not None}
    of_edges = {
        edge: p for edge in graph.edges if (p := _progress(seen.listed(edge.source, edge.window)))
    }
    end = (project, workflow) if workflow is not None else last(progress)
    chain = [] if end is None else critical_chain(graph, progress, of_edges, end)
    return DependencyGraphOut(
        date=day,
        nodes=nodes,
        edges=edges,
        critical=list(map("/".join, chain)) if len(chain) > 1 else [],
        is_cut=graph.is_cut,
    )


def _connected(network: Network, project: str) -> list[WorkflowName]:
    """Return the workflows of a project that name others, or are named."""
    named = set(network.hidden)
    for name, linked in network.known.items():
        if linked.links:
            named.add(name)
            named |= {(one.named.project, one.named.workflow) for one in linked.links}
    return [one for one in sorted(named) if one[0] == project and one in network.known]


async def _with_zones(
    uow: UnitOfWork, network: Network, roots: Collection[WorkflowName]
) -> Network:
    """Return it with the zones of ``roots``: what names nothing was not read."""
    unread = {network.ids[one]: one for one in roots if not network.known[one].links}
    zones = await uow.references.zones(unread)
    known = {unread[i]: replace(network.known[unread[i]], timezone=z) for i, z in zones.items()}
    return replace(network, known={**network.known, **known})


async def _allowed(uow: UnitOfWork, edges: Sequence[Edge]) -> set[Edge]:
    """Return the edges that the project of their source allows."""
    wanted = {(one.source[0], one.target[0]) for one in edges}
    seen = await uow.grants.given(wanted, Grant.SEE)
    run = await uow.grants.given(wanted, Grant.RUN)
    return {
        edge
        for edge in edges
        if all(
            (edge.source[0], edge.target[0])
            in (seen if one.named.kind is LogicKind.DEPENDENT else run)
            for one in edge.links
        )
    }


@dataclass
class _Seen:
    """A graph as the caller sees it, with the runs of its windows."""

    network: Network
    graph: DependencyGraph
    runs: Mapping[Windowed, Sequence[Instance]] = field(default_factory=dict)

    def wanted(self) -> set[Windowed]:
        ids = self.network.ids
        nodes = {(ids[n], w) for n, w in self.graph.windows.items() if n in ids}
        return nodes | {(ids[e.source], e.window) for e in self.graph.edges if e.source in ids}

    def found(self, name: WorkflowName, window: Window) -> Sequence[Instance]:
        return self.runs.get((self.network.ids.get(name, -1), window), ())

    def listed(self, name: WorkflowName, window: Window) -> list[DependencyRun]:
        found = self.found(name, window)[:RUNS_EACH]
        return shown("workflow instance", found, DependencyRun.model_validate, by_id)

    def node(self, name: WorkflowName) -> DependencyNode:
        window = self.graph.windows[name]
        listed = self.listed(name, window)
        progress = _progress(listed)
        known = self.network.known.get(name)
        return DependencyNode(
            id="/".join(name),
            project=name[0],
            workflow=name[1],
            is_known=known is not None,
            timezone=None if known is None else known.timezone,
            distance=self.graph.distances[name],
            since=window[0],
            until=window[1],
            state=listed[0].state if listed else None,
            runs=listed,
            has_more=len(self.found(name, window)) > RUNS_EACH,
            started_at=None if progress is None else progress.started,
            finished_at=None if progress is None else progress.ended,
            hidden=self.network.hidden.get(name, 0),
        )

    def edge(self, edge: Edge, is_allowed: bool) -> DependencyEdge:
        return DependencyEdge(
            source="/".join(edge.source),
            target="/".join(edge.target),
            tasks=[
                DependencyTask(
                    task=one.named.task, kind=one.named.kind, date=one.date, of_task=one.of_task
                )
                for one in edge.links
            ],
            is_allowed=is_allowed,
            since=edge.window[0],
            until=edge.window[1],
            run=next(iter(self.listed(edge.source, edge.window)), None),
        )


def _progress(runs: Sequence[DependencyRun]) -> Progress | None:
    """Return how far runs are; None: there are none."""
    if not runs:
        return None
    ends = [one.finished_at if one.state in FINISHED_WORKFLOW else None for one in runs]
    return Progress(
        min((one.started_at for one in runs if one.started_at), default=None),
        None if None in ends else max((one for one in ends if one), default=None),
    )
