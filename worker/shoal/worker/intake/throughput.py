"""How far ahead of its free slots a worker claims: as much as it is about to finish."""

import time
from collections import deque

WINDOW_S = 0.1  # what ended within this time is likely to be matched in the next
SHORT_S = 0.25  # an attempt that takes longer says nothing about the next moment
MOST = 64  # attempts ahead, unless the settings say otherwise
MOST_OF_A_SLOT = 8  # a task that turns out long keeps so many waiting at most


class Throughput:
    """Remembers the latest short attempts of a worker with ``slots`` slots.

    ``ahead`` never exceeds ``most``.
    """

    def __init__(self, slots: int, most: int = MOST) -> None:
        self._ends: deque[float] = deque(maxlen=min(most, MOST_OF_A_SLOT * slots))

    def note_end(self, began_at: float) -> None:
        """Count an attempt that ends now; it had its slot since ``began_at`` (monotonic s)."""
        now = time.monotonic()
        if now - began_at < SHORT_S:
            self._ends.append(now)

    @property
    def ahead(self) -> int:
        """How many attempts to have ready beside those in the slots: 0 for an idle worker."""
        oldest = time.monotonic() - WINDOW_S
        ends = self._ends
        while ends and ends[0] < oldest:
            ends.popleft()
        return len(ends)
