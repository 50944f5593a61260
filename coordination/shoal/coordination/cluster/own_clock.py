"""How far off a member's own wall clock is, by the stamps that its own writes get."""

from collections.abc import Callable

from shoal.coordination.cluster.cluster_clock import read_clocks
from shoal.core.timing.cluster_time import LONGEST_AGE_S, LONGEST_TRIP_S, STEP_S, ClockReading

CHANGE_S = 1.0  # a difference that changed by less is not worth a write
RETRY_S = 60.0  # after a write whose answer came too late to say anything


class OwnClock:
    """This process's wall clock against that of ZooKeeper's leader, which stamps every write.

    It needs no request of its own: the answer to a member's registration has the stamp.
    ``is_due`` says when a write is worth it for the clock alone: the wall clock was set, or it was
    never measured, or too long ago.
    """

    def __init__(self, read: Callable[[], ClockReading] = read_clocks) -> None:
        self.read = read
        self._ahead_s = 0.0
        self._measured_s: float | None = None  # since boot
        self._tried: ClockReading | None = None

    @property
    def ahead_s(self) -> float | None:
        """Seconds ahead of the ensemble's clock; None if they agree, or it is not known."""
        return round(self._ahead_s, 1) if abs(self._ahead_s) > STEP_S else None

    @property
    def is_due(self) -> bool:
        now = self.read()
        if self._tried is None or abs(now.ahead_s - self._tried.ahead_s) > STEP_S:
            return True
        if self._measured_s is None:
            return now.since_boot_s - self._tried.since_boot_s > RETRY_S
        return now.since_boot_s - self._measured_s > LONGEST_AGE_S

    def note(self, sent: ClockReading, stamp_ms: int) -> bool:
        """Learn from a write that was ``sent`` and is answered now. Returns whether it is to be
        written again, with a new difference."""
        answered, was_s = self.read(), self.ahead_s or 0.0
        self._tried = answered
        trip_s = answered.since_boot_s - sent.since_boot_s
        moved_s = answered.ahead_s - sent.ahead_s
        if trip_s > LONGEST_TRIP_S or abs(moved_s) > CHANGE_S:
            self._measured_s = None
            return False
        self._measured_s = answered.since_boot_s
        self._ahead_s = sent.wall_s + trip_s / 2 - stamp_ms / 1000
        return abs((self.ahead_s or 0.0) - was_s) > CHANGE_S
