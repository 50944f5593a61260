"""How far off a member's own wall clock is, by the stamps that its own writes get."""

from collections.abc import Callable

from shoal.coordination.cluster.cluster_clock import read_clocks
from shoal.core.timing.cluster_time import LONGEST_AGE_S, LONGEST_TRIP_S, STEP_S, Shown

NEWS_S = 1.0  # a difference that changed by less is not worth a write
RETRY_S = 60.0  # after a write whose answer came too late to say anything


class OwnClock:
    """This process's wall clock against that of ZooKeeper's leader, who stamps every write.

    Nobody is asked for it: a member that writes its registration looks at the answer. ``is_due``
    says when a write is worth it for the clock's sake alone: the wall clock was set, or nothing
    is known of it, or for too long.
    """

    def __init__(self, read: Callable[[], Shown] = read_clocks) -> None:
        self.read = read
        self._ahead_s = 0.0
        self._measured_s: float | None = None  # since boot
        self._tried: Shown | None = None

    @property
    def ahead_s(self) -> float | None:
        """Seconds ahead of the ensemble's clock; None if they agree, or nobody knows."""
        return round(self._ahead_s, 1) if abs(self._ahead_s) > STEP_S else None

    @property
    def is_due(self) -> bool:
        now = self.read()
        if self._tried is None or abs(now.ahead_s - self._tried.ahead_s) > STEP_S:
            return True
        if self._measured_s is None:
            return now.since_boot_s - self._tried.since_boot_s > RETRY_S
        return now.since_boot_s - self._measured_s > LONGEST_AGE_S

    def note(self, sent: Shown, stamp_ms: int) -> bool:
        """Learn from a write that was ``sent`` and is answered now; is there anything to tell?"""
        answered, told_s = self.read(), self.ahead_s or 0.0
        self._tried = answered
        trip_s = answered.since_boot_s - sent.since_boot_s
        moved_s = answered.ahead_s - sent.ahead_s
        if trip_s > LONGEST_TRIP_S or abs(moved_s) > NEWS_S:
            self._measured_s = None
            return False
        self._measured_s = answered.since_boot_s
        self._ahead_s = sent.wall_s + trip_s / 2 - stamp_ms / 1000
        return abs((self.ahead_s or 0.0) - told_s) > NEWS_S
