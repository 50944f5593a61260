"""Which workflows wait for which on one day, and what decides when they are done.

A workflow waits for those that it runs (SUB_WORKFLOW, MAP) and for those whose runs its DEPENDENT
tasks look for. Each has a window of logical time: the day that was asked for, and around it what
the date values of DEPENDENT tasks lead to. ``last1Days`` leads to the day before.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from shoal.core.logic.dependency_rules import WorkflowName
from shoal.core.logic.intervals import UnknownDateValue, intervals
from shoal.core.logic.references import WorkflowLink
from shoal.core.timing.wallclock import SECOND, first_instant_from

Window = tuple[datetime, datetime]  # of logical time, in UTC; the end is excluded

_DAY = timedelta(days=1)
_AHEAD = 40  # days after a run on which another may look for it: lastMonth looks 31 days back
_BEHIND = 31  # and before it: thisMonthEnd looks ahead


@dataclass(frozen=True)
class Linked:
    """A workflow: its zone, and what its newest version names."""

    timezone: str
    links: tuple[WorkflowLink, ...] = ()


@dataclass(frozen=True)
class GraphEdge:
    """``target`` waits for ``source``, for each of ``links``.

    ``window``: of the runs of ``source`` that those of ``target`` look for, or start. It is not
    always the window of ``source``, which another workflow may look for on another day.
    """

    source: WorkflowName
    target: WorkflowName
    links: tuple[WorkflowLink, ...]
    window: Window


@dataclass(frozen=True)
class DependencyGraph:
    """Workflows with their windows and their distance from where the search began.

    ``is_cut``: there are more. Those that are named and are not known have a window, too.
    """

    windows: Mapping[WorkflowName, Window]
    distances: Mapping[WorkflowName, int]
    edges: tuple[GraphEdge, ...]
    is_cut: bool


def day_of(day: date, timezone: str) -> Window:
    """Return the window of a day in a zone."""
    zone = ZoneInfo(timezone)
    start, end = (
        first_instant_from(datetime.combine(one, datetime.min.time()), zone).astimezone(UTC)
        for one in (day, day + _DAY)
    )
    return start, end


def dependency_graph(
    known: Mapping[WorkflowName, Linked],
    roots: Collection[WorkflowName],
    day: date,
    hops: int,
    most: int,
) -> DependencyGraph:
    """Return which workflows wait for which around ``roots``, ``hops`` steps far both ways.

    ``known``: all workflows that may be walked through. At most ``most`` workflows are returned.
    """
    search = _Search(known, most)
    for root in sorted(roots):
        search.add(root, 0, day_of(day, known[root].timezone))
    for distance in range(1, hops + 1):
        for name in [one for one, at in search.distances.items() if at == distance - 1]:
            for other, window in search.around(name):
                search.add(other, distance, window)
    return DependencyGraph(
        dict(search.windows),
        dict(search.distances),
        tuple(search.edges()),
        search.is_cut,
    )


@dataclass
class _Search:
    known: Mapping[WorkflowName, Linked]
    most: int
    windows: dict[WorkflowName, Window] = field(default_factory=dict)
    distances: dict[WorkflowName, int] = field(default_factory=dict)
    is_cut: bool = False

    def __post_init__(self) -> None:
        self._waiting: defaultdict[WorkflowName, dict[WorkflowName, None]] = defaultdict(dict)
        for name, one in self.known.items():
            for link in one.links:
                self._waiting[link.named.project, link.named.workflow][name] = None

    def add(self, name: WorkflowName, distance: int, window: Window) -> None:
        if name in self.windows:
            if self.distances[name] == distance != 0:  # another way of the same length
                self.windows[name] = _around([self.windows[name], window])
        elif len(self.windows) >= self.most:
            self.is_cut = True
        else:
            self.windows[name], self.distances[name] = window, distance

    def around(self, name: WorkflowName) -> Iterator[tuple[WorkflowName, Window]]:
        window = self.windows[name]
        if (own := self.known.get(name)) is not None:
            for link in own.links:
                source = link.named.project, link.named.workflow
                if source != name:
                    yield source, looked_for(link, window, own.timezone)
        for other in self._waiting.get(name, ()):
            if other != name:
                for link in self.known[other].links:
                    if (link.named.project, link.named.workflow) == name:
                        yield other, looking(link, window, self.known[other].timezone)

    def edges(self) -> Iterator[GraphEdge]:
        for target in self.windows:
            by_source: defaultdict[WorkflowName, list[WorkflowLink]] = defaultdict(list)
            for link in self.known[target].links if target in self.known else ():
                by_source[link.named.project, link.named.workflow].append(link)
            for source, some in by_source.items():
                if source in self.windows:
                    zone = self.known[target].timezone
                    wanted = [looked_for(link, self.windows[target], zone) for link in some]
                    yield GraphEdge(source, target, tuple(some), _around(wanted))


def _around(windows: Collection[Window]) -> Window:
    return min(start for start, _ in windows), max(end for _, end in windows)


def looked_for(link: WorkflowLink, window: Window, timezone: str) -> Window:
    """Return the window of the runs that runs in ``window`` look for, or start."""
    if link.date is None:
        return window
    zone = ZoneInfo(timezone)
    try:
        found = [
            one
            for base in (window[0], window[1] - SECOND)
            for one in intervals(link.date, base.astimezone(zone))
        ]
    except (UnknownDateValue, OverflowError):
        return window
    if not found:
        return window
    return (
        min(start.astimezone(UTC) for start, _ in found),
        max(end.astimezone(UTC) for _, end in found) + SECOND,
    )


def looking(link: WorkflowLink, window: Window, timezone: str) -> Window:
    """Return the window of the runs that look for runs in ``window``, or have started them.

    It is one day: of those on which they do, the first that is not before the window. Where zones
    differ a window is of two days of the other zone; that which has more of it counts.
    """
    if link.date is None:
        return window
    first = window[0].astimezone(ZoneInfo(timezone)).date()
    best, most = window, timedelta(0)
    for step in (*range(_AHEAD + 1), *range(-1, -_BEHIND - 1, -1)):
        try:
            own = day_of(first + step * _DAY, timezone)
        except OverflowError:
            continue
        wanted = looked_for(link, own, timezone)
        common = min(wanted[1], window[1]) - max(wanted[0], window[0])
        if common > most:
            best, most = own, common
        elif most:
            break  # it was the day before
    return best


@dataclass(frozen=True)
class GraphProgress:
    """When the first run of a window began, and the last one ended; None: it has not.

    A workflow without a run has no Progress.
    """

    started: datetime | None
    ended: datetime | None


def critical_chain(
    graph: DependencyGraph,
    progress: Mapping[WorkflowName, GraphProgress],
    of_edges: Mapping[GraphEdge, GraphProgress],
    end: WorkflowName,
) -> list[WorkflowName]:
    """Return the workflows that decide when ``end`` is done, the first one first.

    Of those that a workflow waited for the last to end decides: one that ended before it began, or
    after it was done, was not waited for. One that has not ended, or has no run, counts as the last
    of those that a workflow still waits for. The chain does not go on behind runs of other days.
    """
    before: defaultdict[WorkflowName, list[GraphEdge]] = defaultdict(list)
    for edge in graph.edges:
        before[edge.target].append(edge)
    chain, own = [end], progress.get(end)
    while True:
        candidates = [
            edge
            for edge in before[chain[-1]]
            if edge.source not in chain and _decides(of_edges.get(edge), own)
        ]
        if not candidates:
            return chain[::-1]
        edge = max(candidates, key=lambda one: (_end(of_edges.get(one)), one.source))
        chain.append(edge.source)
        own = of_edges.get(edge)
        start, stop = graph.windows[edge.source]
        if edge.window[1] <= start or stop <= edge.window[0]:
            return chain[::-1]


def _decides(source: GraphProgress | None, own: GraphProgress | None) -> bool:
    if own is None or own.started is None:
        return True
    if source is None or source.ended is None:
        return own.ended is None
    return own.started < source.ended and (own.ended is None or source.ended <= own.ended)


def last(progress: Mapping[WorkflowName, GraphProgress]) -> WorkflowName | None:
    """Return the workflow that ends last; None: none has a run."""
    return max(progress, key=lambda one: (_end(progress[one]), one), default=None)


def _end(progress: GraphProgress | None) -> datetime:
    if progress is None or progress.ended is None:
        return datetime.max.replace(tzinfo=UTC)
    return progress.ended
