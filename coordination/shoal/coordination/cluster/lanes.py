"""Lanes: within a priority, projects take turns.

The entries of one project stand in a *lane*, a number made from the project's name. Within a lane
the order is that of the entries. Between lanes of equal priority a claimer takes one entry from
each in turn (start-time fair queueing): each lane counts what was taken from it, and the lane from
which least was taken is next. A lane that had nothing begins at the least count of the others, so
it is next and has no credit for the past. A claimer knows of its own claims alone. As each claimer
is fair, all together are.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

MOST_LANES = 1 << 32
_MOST_REMEMBERED = 1_000  # lanes


def lane_of(project: str) -> int:
    """Return the lane of a project. Two projects rarely share one, and then share their turns."""
    return crc32(project.encode("utf-8", "surrogatepass"))


class LaneTurns:
    """Whose turn it is among the lanes of one priority, for one claimer."""

    def __init__(self) -> None:
        self._taken: dict[int, int] = {}  # by lane that has entries: how many were taken
        self._last: dict[int, int] = {}  # by lane: when an entry was taken last, by ``_clock``
        self._clock = 0

    def keep(self, lanes: Collection[int]) -> None:
        """Note which lanes have entries. Others have no part any longer, and no credit later."""
        if len(lanes) <= 1 and not self._taken:
            return
        self._taken = {lane: count for lane, count in self._taken.items() if lane in lanes}
        least = min(self._taken.values(), default=0)
        for lane in lanes:
            self._taken.setdefault(lane, least)

    def take(self, lane: int, count: int = 1) -> None:
        """Note that entries were taken from a lane."""
        self._clock += 1
        self._taken[lane] = self._taken.get(lane, min(self._taken.values(), default=0)) + count
        if len(self._last) > _MOST_REMEMBERED:
            self._last.clear()
        self._last[lane] = self._clock

    def merged(self, lines: Mapping[int, Sequence[T]]) -> Iterator[T]:
        """Yield the entries of several lanes in the order in which their turns come."""
        self.keep(lines.keys())
        if len(lines) == 1:
            yield from next(iter(lines.values()))
            return
        turns = [(*self._turn(lane), lane, 0) for lane, entries in lines.items() if entries]
        heapify(turns)
        while turns:
            taken, last, lane, at = turns[0]
            yield lines[lane][at]
            if at + 1 < len(lines[lane]):
                heapreplace(turns, (taken + 1, last, lane, at + 1))
            else:
                heappop(turns)

    def next(self, lanes: Collection[int]) -> int:
        """Return the lane whose turn it is."""
        self.keep(lanes)
        if len(lanes) == 1:
            return next(iter(lanes))
        return min(lanes, key=lambda lane: (*self._turn(lane), lane))

    def _turn(self, lane: int) -> tuple[int, int]:
        return self._taken.get(lane, 0), self._last.get(lane, 0)
