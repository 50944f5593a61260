"""Which runs of one workflow may be active together: its overlap policy as pure functions.

A run is *active* from its admission to its end and *waits* before that. A master
that creates or ends runs of a workflow holds the lock on its row, calls ``refusal`` and
``settle``, and stores their results. The rules in words: docs/semantics.md, section 5.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self

from shoal.core.definition.model import Overlap, WorkflowSpec

_MOST_NAMED = 3  # runs in one reason
_QUEUES = frozenset({Overlap.QUEUE, Overlap.QUEUE_BY_PRIORITY})


@dataclass(frozen=True)
class OverlapPolicy:
    """What the newest published version of a workflow says about overlapping runs."""

    overlap: Overlap
    max_active: int
    max_queued: int

    @classmethod
    def of(cls, spec: WorkflowSpec) -> Self:
        """Return the policy of a definition."""
        return cls(spec.overlap, spec.max_active, spec.max_queued)


@dataclass(frozen=True)
class Waiter:
    """A run that waits. Ids ascend in the order in which runs were created."""

    id: int
    priority: int
    logical_time: datetime


@dataclass(frozen=True)
class Lineup:
    """The unfinished runs of one workflow.

    What the policy does not need may be left out: of ``waiting``, in the two policies that only
    queue, those behind the first ``max_active`` in the order of admission (``waiting_count``
    counts all); ``replaceable``, the active runs that are not being stopped, unless the policy
    is ``replace``. ``active_ids`` are some of the active runs, for people: the oldest ones.
    """

    active: int = 0
    waiting: tuple[Waiter, ...] = ()
    waiting_count: int = 0
    replaceable: tuple[int, ...] = ()
    active_ids: tuple[int, ...] = field(default=(), compare=False)

    def joined_by(self, newcomer: Waiter) -> "Lineup":
        """Return the line-up with one more run that waits."""
        waiting = (*self.waiting, newcomer)
        return replace(self, waiting=waiting, waiting_count=self.waiting_count + 1)

    def after(self, moves: "Moves") -> "Lineup":
        """Return the state once ``moves`` are stored. A replaced run stays active meanwhile."""
        gone = {*moves.admit, *moves.supersede}
        stayed = tuple(waiter for waiter in self.waiting if waiter.id not in gone)
        there = (*self.replaceable, *moves.admit)
        return Lineup(
            active=self.active + len(moves.admit),
            waiting=stayed,
            waiting_count=self.waiting_count - (len(self.waiting) - len(stayed)),
            replaceable=tuple(run for run in there if run not in moves.replace),
            active_ids=(*self.active_ids, *moves.admit),
        )


@dataclass(frozen=True)
class Moves:
    """What is to happen to runs of one workflow, as instance ids.

    ``admit`` may start, in this order. ``supersede`` (which wait) and ``replace`` (which are
    active) are to be stopped in favour of ``by``.
    """

    admit: tuple[int, ...] = ()
    supersede: tuple[int, ...] = ()
    replace: tuple[int, ...] = ()
    by: int | None = None


def refusal(
    policy: OverlapPolicy, active: int, waiting: int, active_ids: Sequence[int] = ()
) -> str | None:
    """Return why one more run is refused, given those that are active and wait; None: it is not.

    ``active_ids``: active runs to name in the reason.
    """
    room = max(0, policy.max_active - active)
    if policy.overlap is Overlap.SKIP_NEW and waiting >= room:
        return (
            f"{_runs(active + waiting)} unfinished{_named(active_ids)}, and no more than "
            f"{policy.max_active} may overlap (overlap: skip_new)"
        )
    if policy.overlap in _QUEUES and waiting + 1 - room > policy.max_queued:
        return (
            f"{_runs(waiting)} waiting already{_named(active_ids, 'behind ')}, and no more than "
            f"{policy.max_queued:,} may wait (max_queued)"
        )
    return None


def settle(policy: OverlapPolicy, lineup: Lineup) -> Moves:
    """Return the runs to admit and to stop, so that none waits while there is room."""
    room = max(0, policy.max_active - lineup.active)
    match policy.overlap:
        case Overlap.ALLOW:
            return Moves(admit=_ids(sorted(lineup.waiting, key=_age)))
        case Overlap.QUEUE | Overlap.SKIP_NEW:
            return Moves(admit=_ids(sorted(lineup.waiting, key=_age)[:room]))
        case Overlap.QUEUE_BY_PRIORITY:
            return Moves(admit=_ids(sorted(lineup.waiting, key=_rank)[:room]))
        case Overlap.QUEUE_LATEST:
            return _latest(lineup, room)
        case Overlap.REPLACE:
            return _newest(policy, lineup, room)


def _latest(lineup: Lineup, room: int) -> Moves:
    """Only the newest run may wait."""
    if not lineup.waiting:
        return Moves()
    *older, newest = sorted(lineup.waiting, key=_age)
    admit = (newest.id,) if room else ()
    return Moves(admit, supersede=_ids(older), by=newest.id if older else None)


def _newest(policy: OverlapPolicy, lineup: Lineup, room: int) -> Moves:
    """The newest ``max_active`` runs, active or not, have the place; the others make room."""
    waiting = _ids(sorted(lineup.waiting, key=_age))
    if not waiting:
        return Moves()
    in_order = [*sorted(lineup.replaceable), *waiting]
    kept = set(in_order[-policy.max_active :])
    supersede = tuple(run for run in waiting if run not in kept)
    stop = tuple(run for run in in_order if run not in kept and run not in supersede)
    admit = tuple(run for run in waiting if run in kept)[:room]
    return Moves(admit, supersede, stop, by=waiting[-1] if supersede or stop else None)


def _ids(waiters: Iterable[Waiter]) -> tuple[int, ...]:
    return tuple(waiter.id for waiter in waiters)


def _age(waiter: Waiter) -> int:
    return waiter.id


def _rank(waiter: Waiter) -> tuple[int, datetime, int]:
    return waiter.priority, waiter.logical_time, waiter.id


def _named(ids: Sequence[int], before: str = "") -> str:
    """Return the first of these runs in brackets."""
    if not ids:
        return ""
    names = ", ".join(map(str, ids[:_MOST_NAMED]))
    more = ", …" if len(ids) > _MOST_NAMED else ""
    return f" ({before}run{'s' if len(ids) > 1 else ''} {names}{more})"


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count:,} runs are"
