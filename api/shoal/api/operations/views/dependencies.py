"""Which workflows wait for which on one day, with their runs."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

from shoal.api.schemas.views.dependencies import (
    DependencyEdge,
    DependencyGraphOut,
    DependencyNode,
    DependencyRun,
    DependencyTask,
)
from shoal.api.web.answers import by_id, shown
from shoal.core.access.authorization import Visible
from shoal.core.access.grants import Grant
from shoal.core.definition.kinds import LogicKind
from shoal.core.logic.dependency_graph import (
    DependencyGraph,
    GraphEdge,
    GraphProgress,
    Window,
    critical_chain,
    dependency_graph,
    last,
)
from shoal.core.logic.dependency_rules import WorkflowName
from shoal.core.runs.states import FINISHED_WORKFLOW
from shoal.sql import UnitOfWork
from shoal.sql.repositories.authoring.references import Network

MOST_WORKFLOWS = 500  # of one answer
RUNS_EACH = 25  # of a workflow in its window; an hourly one has 24 or 25 a day


async def graph_of(
    uow: UnitOfWork, project: str, workflow: str | None, day: date, hops: int, visible: Visible
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
    windows = {*graph.windows.items(), *((edge.source, edge.window) for edge in graph.edges)}
    seen = await _seen(uow, network, windows)
    allowed = await _allowed(uow, graph.edges)
    nothing = _Runs()
    progress = {
        name: runs.progress
        for name, window in graph.windows.items()
        if (runs := seen.get((name, window), nothing)).progress
    }
    of_edges = {
        edge: runs.progress
        for edge in graph.edges
        if (runs := seen.get((edge.source, edge.window), nothing)).progress
    }
    end = (project, workflow) if workflow is not None else last(progress)
    chain = [] if end is None else critical_chain(graph, progress, of_edges, end)
    return DependencyGraphOut(
        date=day,
        nodes=[
            _node(name, graph, network, seen.get((name, window), nothing))
            for name, window in graph.windows.items()
        ],
        edges=[
            _edge(edge, edge in allowed, seen.get((edge.source, edge.window), nothing))
            for edge in graph.edges
        ],
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


async def _allowed(uow: UnitOfWork, edges: Sequence[GraphEdge]) -> set[GraphEdge]:
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


@dataclass(frozen=True)
class _Runs:
    """The runs of a workflow in a window, the latest logical time first."""

    listed: list[DependencyRun] = field(default_factory=list)
    has_more: bool = False

    @cached_property
    def progress(self) -> GraphProgress | None:
        """How far they are; None: there are none."""
        if not self.listed:
            return None
        ends = [one.finished_at if one.state in FINISHED_WORKFLOW else None for one in self.listed]
        return GraphProgress(
            min((one.started_at for one in self.listed if one.started_at), default=None),
            None if None in ends else max((one for one in ends if one), default=None),
        )


async def _seen(
    uow: UnitOfWork, network: Network, windows: Collection[tuple[WorkflowName, Window]]
) -> dict[tuple[WorkflowName, Window], _Runs]:
    """Return the runs in windows of workflows; of those that the caller does not see, none."""
    wanted = {
        (name, window): (network.ids[name], window)
        for name, window in windows
        if name in network.ids
    }
    found = await uow.recent.runs_within(set(wanted.values()), RUNS_EACH + 1)
    return {
        key: _Runs(
            shown("workflow instance", found[row][:RUNS_EACH], DependencyRun.model_validate, by_id),
            len(found[row]) > RUNS_EACH,
        )
        for key, row in wanted.items()
    }


def _node(
    name: WorkflowName, graph: DependencyGraph, network: Network, runs: _Runs
) -> DependencyNode:
    known, progress = network.known.get(name), runs.progress
    since, until = graph.windows[name]
    return DependencyNode(
        id="/".join(name),
        project=name[0],
        workflow=name[1],
        is_known=known is not None,
        timezone=None if known is None else known.timezone,
        distance=graph.distances[name],
        since=since,
        until=until,
        state=runs.listed[0].state if runs.listed else None,
        runs=runs.listed,
        has_more=runs.has_more,
        started_at=None if progress is None else progress.started,
        finished_at=None if progress is None else progress.ended,
        hidden=network.hidden.get(name, 0),
    )


def _edge(edge: GraphEdge, is_allowed: bool, runs: _Runs) -> DependencyEdge:
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
        run=runs.listed[0] if runs.listed else None,
    )
