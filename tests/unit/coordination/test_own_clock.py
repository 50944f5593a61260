"""How far off a member's own clock is, by the stamps on its writes."""

import pytest

from shoal.coordination.cluster.own_clock import RETRY_S, OwnClock
from shoal.core.timing.cluster_time import LONGEST_AGE_S, ClockReading

NOON_S = 1_800_000_000.0  # what the ensemble's clock shows when ours have run for 0 s


class Clocks:
    """A wall clock that can be set, and the time since boot."""

    def __init__(self) -> None:
        self.since_boot_s = 1_000.0
        self.off_s = 0.0

    def __call__(self) -> ClockReading:
        return ClockReading(NOON_S + self.since_boot_s + self.off_s, self.since_boot_s)


def write(own: OwnClock, clocks: Clocks, trip_s: float = 0.0) -> bool:
    sent = own.read()
    stamp_ms = round((NOON_S + clocks.since_boot_s + trip_s / 2) * 1000)
    clocks.since_boot_s += trip_s
    return own.note(sent, stamp_ms)


@pytest.mark.parametrize("off_s", [0.0, 1.5, -1.5])
def test_a_clock_that_is_right_has_nothing_to_tell(off_s: float) -> None:
    clocks = Clocks()
    clocks.off_s = off_s
    own = OwnClock(clocks)
    assert own.is_due  # nothing is known yet
    assert not write(own, clocks, trip_s=0.5)
    assert own.ahead_s is None
    assert not own.is_due


@pytest.mark.parametrize("off_s", [3600.0, -12.5])
def test_a_clock_that_is_off_is_told_once(off_s: float) -> None:
    clocks = Clocks()
    clocks.off_s = off_s
    own = OwnClock(clocks)
    assert write(own, clocks)
    assert own.ahead_s == off_s
    clocks.off_s += 0.5
    assert not write(own, clocks)  # no news worth a write of its own


def test_a_clock_that_is_set_is_noticed_without_asking_anybody() -> None:
    clocks = Clocks()
    own = OwnClock(clocks)
    write(own, clocks)
    assert not own.is_due
    clocks.off_s = -5.0
    assert own.is_due
    assert write(own, clocks)
    assert own.ahead_s == -5.0
    clocks.off_s = 0.0
    assert own.is_due
    assert write(own, clocks)
    assert own.ahead_s is None


def test_an_answer_that_took_long_says_nothing_and_is_tried_again() -> None:
    clocks = Clocks()
    own = OwnClock(clocks)
    clocks.off_s = 60.0
    assert not write(own, clocks, trip_s=5.0)
    assert own.ahead_s is None
    assert not own.is_due
    clocks.since_boot_s += RETRY_S + 1
    assert own.is_due
    assert write(own, clocks)
    assert own.ahead_s == 60.0


def test_what_is_known_grows_old() -> None:
    clocks = Clocks()
    own = OwnClock(clocks)
    write(own, clocks)
    clocks.since_boot_s += LONGEST_AGE_S + 1
    assert own.is_due
