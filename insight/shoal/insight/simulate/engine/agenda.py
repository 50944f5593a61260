"""The clock of a simulation: what is to be done when, in the order of time."""

from collections.abc import Callable
from datetime import datetime
from heapq import heappop, heappush
from typing import Any

Do = Callable[[Any], None]


class Agenda:
    """Calls functions at instants. What is due at the same one is done in the order of adding.

    ``now`` only grows. Instants are aware UTC datetimes.
    """

    def __init__(self, start: datetime) -> None:
        self.now = start
        self._heap: list[tuple[datetime, int, Do, Any]] = []
        self._added = 0

    def add(self, at: datetime, do: Do, subject: Any) -> None:
        """Call ``do(subject)`` at ``at``; at once, that is in this moment, if it has passed."""
        self._added += 1
        if at < self.now:
            at = self.now
        heappush(self._heap, (at, self._added, do, subject))

    def run(self, end: datetime, settle: Callable[[], None]) -> None:
        """Do everything that is due before ``end``; ``now`` is ``end`` afterwards.

        ``settle`` is called when all of an instant is done, and may add to the same instant.
        """
        heap = self._heap
        while heap and heap[0][0] < end:
            self.now = now = heap[0][0]
            while heap and heap[0][0] == now:
                _, _, do, subject = heappop(heap)
                do(subject)
            settle()
        self.now = end
