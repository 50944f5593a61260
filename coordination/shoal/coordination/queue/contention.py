"""Whose turn is it? How claimers of one group keep out of each other's way.

While no two claims collide, each claimer takes exactly the first entries. After a collision the
claimers share the head out for a while: every entry has an order of claimers, found by its id,
and a claimer takes those entries of which it is the first, in the queue's order. The first of an
entry may be busy, slow or gone, so whoever finds an entry still there that it had passed over
moves up in that entry's order: after ``1 + log2(claimers)`` such looks anybody takes it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shoal.coordination.queue.entry import Entry

GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads neighbouring ids evenly


class Place(NamedTuple):
    """One of ``claimers`` who serve a group; ``rank`` counts from 0."""

    rank: int
    claimers: int


class Choice(NamedTuple):
    """Entries to claim next. ``ours``: nobody else is expected to want them."""

    entries: list[Entry]
    ours: bool


def turn(entry: Entry, place: Place) -> int:
    """Return how many claimers come before us in the order of ``entry``."""
    spread = (entry.task_instance_id * GOLDEN & (1 << 64) - 1) >> 32
    return (place.rank - spread) % place.claimers


def choose(window: Sequence[Entry], wanted: int, place: Place, passed: Mapping[int, int]) -> Choice:
    """Choose up to ``wanted`` of ``window``, the first entries of the queue in order.

    ``passed`` tells by task instance how often we found an entry still there that we had passed
    over. If nothing is ours we choose among the rest, beginning with those that we are
    next in line for: so claimers begin at different entries.
    """
    turns = [(turn(entry, place), entry) for entry in window]
    ours = [e for t, e in turns if t < 1 << max(0, passed.get(e.task_instance_id, 0) - 1)]
    if ours:
        return Choice(ours[:wanted], ours=True)
    return Choice([entry for _, entry in sorted(turns)[:wanted]], ours=False)
