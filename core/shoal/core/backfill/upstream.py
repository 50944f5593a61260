"""Which runs of a backfill wait for which others: what their DEPENDENT tasks look for.

A run that waits inside, in its DEPENDENT task, takes one of the places of the window. If what it
waits for needs that place, nothing ever moves; so a run is not even started before the runs of
the same backfill that it depends on have ended well.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from shoal.core.definition.dag import successors_of
from shoal.core.definition.model import BackfillBase, WorkflowSpec
from shoal.core.definition.selection import Selection
from shoal.core.logic.intervals import UnknownDateValue, intervals

DEPENDENT = "DEPENDENT"
SAME_DAY = "today"

WorkflowKey = tuple[str, str]  # project, name


@dataclass(frozen=True)
class UpstreamNeed:
    """One item of a DEPENDENT task: runs of another workflow, in the intervals of ``date``."""

    project: str
    workflow: str
    date: str = SAME_DAY

    @property
    def key(self) -> WorkflowKey:
        """The workflow that is looked for."""
        return self.project, self.workflow


def needs_of(spec: WorkflowSpec, selection: Selection | None = None) -> tuple[UpstreamNeed, ...]:
    """Return what the DEPENDENT tasks of a definition look for, each once.

    Those that are disabled, or that a run of ``selection`` leaves out, look for nothing.
    """
    upstream = {task.name: task.depends_on for task in spec.tasks}
    chosen: Collection[str] = upstream
    if selection is not None:
        chosen = selection.of(upstream, successors_of(upstream))
    found: dict[UpstreamNeed, None] = {}
    for task in spec.tasks:
        if task.type == DEPENDENT and task.enabled and task.name in chosen:
            found.update(dict.fromkeys(_items(task.params.get("when"), spec.project)))
    return tuple(found)


def _items(condition: Any, project: str) -> Iterator[UpstreamNeed]:
    """Yield the items of a condition, whatever joins them."""
    if isinstance(condition, list | tuple):
        for one in condition:
            yield from _items(one, project)
    elif isinstance(condition, Mapping):
        if isinstance(workflow := condition.get("workflow"), str):
            date = condition.get("date")
            yield UpstreamNeed(
                str(condition.get("project") or project),
                workflow,
                date if isinstance(date, str) else SAME_DAY,
            )
        else:
            yield from _items(list(condition.values()), project)


class Dated(Protocol):
    """A run of a plan or of a backfill."""

    @property
    def position(self) -> int: ...

    @property
    def workflow_id(self) -> int: ...

    @property
    def logical_time(self) -> datetime: ...


@dataclass(frozen=True)
class Follower:
    """How the runs of one workflow depend on those of others.

    ``needs``: workflow ids with date values; ``zone``: whose calendar the date values mean.
    """

    needs: tuple[tuple[int, str], ...]
    zone: str
    base: BackfillBase = BackfillBase.LOGICAL_TIME

    @classmethod
    def of(
        cls,
        spec: WorkflowSpec,
        zone: str,
        ids: Mapping[WorkflowKey, int],
        selection: Selection | None = None,
    ) -> "Follower":
        """Return it for a definition; needs of workflows that ``ids`` does not have are left out.

        ``ids``: of the workflows of the backfill.
        """
        needs = [(ids[n.key], n.date) for n in needs_of(spec, selection) if n.key in ids]
        return cls(tuple(needs), zone, spec.backfill_base)


class Upstream:
    """Says which runs of a backfill each one waits for."""

    def __init__(self, runs: Iterable[Dated], followers: Mapping[int, Follower]) -> None:
        by_workflow: defaultdict[int, list[tuple[datetime, int]]] = defaultdict(list)
        for run in runs:
            by_workflow[run.workflow_id].append((run.logical_time.astimezone(UTC), run.position))
        self._runs = {workflow: sorted(times) for workflow, times in by_workflow.items()}
        self._followers = followers

    def of(self, run: Dated) -> frozenset[int]:
        """Return the positions of the runs that must have ended well before ``run`` starts."""
        follower = self._followers.get(run.workflow_id)
        if follower is None or not follower.needs:
            return frozenset()
        base = _base(run.logical_time, follower)
        found: set[int] = set()
        for workflow_id, date in follower.needs:
            for start, end in _intervals(date, base):
                found.update(self._within(workflow_id, start, end))
        return frozenset(found - {run.position})

    def _within(self, workflow_id: int, start: datetime, end: datetime) -> Iterator[int]:
        runs = self._runs.get(workflow_id, [])
        low = bisect_left(runs, start.astimezone(UTC), key=lambda run: run[0])
        # Intervals are of whole seconds, closed: their last second belongs to them.
        high = bisect_right(
            runs, end.astimezone(UTC).replace(microsecond=999_999), key=lambda run: run[0]
        )
        return (position for _, position in runs[low:high])


def _base(logical_time: datetime, follower: Follower) -> datetime:
    base = logical_time.astimezone(ZoneInfo(follower.zone))
    if follower.base is BackfillBase.NEXT_DAY:
        base += timedelta(days=1)  # on the wall clock
    return base


def _intervals(date: str, base: datetime) -> list[tuple[datetime, datetime]]:
    try:
        return intervals(date, base)
    except UnknownDateValue:  # the task itself will say so
        return intervals(SAME_DAY, base)
