"""The time of a group: the wall clock of the ensemble, not of any member."""

import time

from shoal.coordination.session.wire import Stat


class EnsembleClock:
    """Count on from the moment at which ZooKeeper's leader said what time it was.

    Deadlines of a group are written by one member and checked by another, so the members' own
    clocks do not serve: one that is an hour ahead would evict all others. ZooKeeper stamps each
    write with its leader's wall clock; from the answer on we count with ``time.monotonic``. An
    answer that was long on its way makes us late by as much: deadlines pass late, never early.
    Only if the servers' clocks differ (and another one becomes leader in the middle of a
    rebalance), or one is set anew, deadlines are off by that difference, until the next write.
    """

    def __init__(self) -> None:
        self._ahead_s = 0.0  # of the monotonic clock
        self._taken = float("-inf")

    def take(self, stat: Stat) -> None:
        """Take the time from the answer to a write of ours, which came just now."""
        self._taken = time.monotonic()
        self._ahead_s = stat.mtime_ms / 1000 - self._taken

    def now_s(self) -> float:
        """Return seconds since the epoch, of the ensemble's clock."""
        return time.monotonic() + self._ahead_s

    @property
    def is_set(self) -> bool:
        """Whether the time was ever taken."""
        return self._taken > float("-inf")

    @property
    def age_s(self) -> float:
        """Seconds since the time was last taken."""
        return time.monotonic() - self._taken
