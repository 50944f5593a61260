"""A breaker: leave a dependency alone while it fails, and let single calls probe it.

::

    CLOSED ──failures in a row──▶ OPEN ──retry_s later──▶ HALF_OPEN ──success──▶ CLOSED
                                   ▲                          │
                                   └─────────failure──────────┘

Pure: the time comes in as an argument, in seconds of any clock that only grows.
"""

from enum import StrEnum


class BreakerState(StrEnum):
    CLOSED = "closed"  # calls may be made
    OPEN = "open"  # calls would fail: none is to be made
    HALF_OPEN = "half-open"  # one call, the probe, is under way; the others wait for its outcome


class Breaker:
    """Counts the failures of one dependency.

    It opens after ``failures`` in a row and allows one probe after ``retry_s`` seconds. If the
    outcome of a probe never comes, the next one is allowed another ``retry_s`` later.
    """

    def __init__(self, *, failures: int = 1, retry_s: float = 1.0) -> None:
        if failures < 1 or retry_s <= 0:
            raise ValueError("a breaker needs at least one failure and a positive retry_s")
        self._most, self._retry_s = failures, retry_s
        self._failures = 0  # in a row
        self._state = BreakerState.CLOSED
        self._probe_at = 0.0  # while it is not closed: when the next probe may begin

    @property
    def state(self) -> BreakerState:
        return self._state

    @property
    def is_closed(self) -> bool:
        return self._state is BreakerState.CLOSED

    def allows(self, now_s: float) -> bool:
        """Return whether a call may be made now; True makes it the probe unless closed."""
        if self.is_closed:
            return True
        if now_s < self._probe_at:
            return False
        self._state = BreakerState.HALF_OPEN
        self._probe_at = now_s + self._retry_s
        return True

    def succeeded(self) -> None:
        """Note that a call was answered."""
        self._failures = 0
        self._state = BreakerState.CLOSED

    def failed(self, now_s: float) -> None:
        """Note that a call failed. One that began before the breaker opened changes nothing."""
        self._failures += 1
        if self._state is BreakerState.HALF_OPEN or (
            self.is_closed and self._failures >= self._most
        ):
            self._state = BreakerState.OPEN
            self._probe_at = now_s + self._retry_s
