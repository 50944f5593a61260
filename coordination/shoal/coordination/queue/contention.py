"""Whose turn it is: how claimers of one group keep out of each other's way.

While no two claims collide, each claimer takes exactly the first entries. After a collision the
claimers share the head out for a while: every entry has an order of claimers, found by its id,
and a claimer takes those entries of which it is the first, in the queue's order. The first of an
entry may be busy, slow or gone. So a claimer that finds an entry still there that it had passed
over moves up in that entry's order: after ``1 + log2(claimers)`` such checks any claimer takes it.
"""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from shoal.coordination.queue.entry import QueueEntry

GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads neighbouring ids evenly


class ClaimerPlace(NamedTuple):
    """One of ``claimers`` that serve a group; ``rank`` counts from 0."""

    rank: int
    claimers: int


class Choice(NamedTuple):
    """Entries to claim next. ``ours``: no other claimer is expected to want them."""

    entries: list[QueueEntry]
    ours: bool


def turn(entry: QueueEntry, place: ClaimerPlace) -> int:
    """Return how many claimers come before us in the order of ``entry``."""
    spread = (entry.task_instance_id * GOLDEN & (1 << 64) - 1) >> 32
    return (place.rank - spread) % place.claimers


def choose(
    window: Sequence[QueueEntry], wanted: int, place: ClaimerPlace, passed: Mapping[int, int]
) -> Choice:
    """Choose up to ``wanted`` of ``window``, the first entries of the queue in order.

    ``passed`` says by task instance how often we found an entry still there that we had passed
    over. If nothing is ours we choose among the rest, beginning with those whose next claimer we
    are: so claimers begin at different entries.
    """
    turns = [(turn(entry, place), entry) for entry in window]
    ours = [e for t, e in turns if t < 1 << max(0, passed.get(e.task_instance_id, 0) - 1)]
    if ours:
        return Choice(ours[:wanted], ours=True)
    turns.sort(key=itemgetter(0))  # those of equal turns stay in the queue's order
    return Choice([entry for _, entry in turns[:wanted]], ours=False)


class PassedOver:
    """The entries that we passed over, and how often we found each of them still there."""

    def __init__(self) -> None:
        self.times: Mapping[int, int] = {}  # by task instance
        self._since_check: set[int] = set()  # task instances
        self._checked_at = float("-inf")

    def note(self, window: Sequence[QueueEntry], chosen: Collection[QueueEntry]) -> None:
        """Note what of ``window`` comes before the last of ``chosen`` and is not among them."""
        if chosen:
            left = {entry.task_instance_id for entry in chosen}
            for entry in window:
                if not left:
                    break
                if entry.task_instance_id in left:
                    left.discard(entry.task_instance_id)
                else:
                    self._since_check.add(entry.task_instance_id)

    def check(self, window: Sequence[QueueEntry], now: float, patience_s: float) -> None:
        """Count what is still in ``window``, which is as of ``now``, every ``patience_s``."""
        if not self._since_check or now <= self._checked_at + patience_s:
            return
        self._checked_at = now
        there = {entry.task_instance_id for entry in window}
        times = {task: n for task, n in self.times.items() if task in there}
        for task in self._since_check & there:
            times[task] = times.get(task, 0) + 1
        self.times = times
        self._since_check.clear()
