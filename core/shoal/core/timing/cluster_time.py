"""What time it is in the cluster: no clock is trusted alone.

A wall clock can jump, drift, or simply be wrong on one node. Fire times, timeouts and delays are
decided by masters, so a wrong clock on one of them would fire early, fire never, or stop healthy
runs. ``ClusterTime`` compares the node's own wall clock with others (the database's, the
ensemble's) and counts on between the comparisons by the time since boot, which nothing sets.

- Own clock and another one agree: the own clock is the time. This is the usual case.
- The others agree with each other, but not with the own clock: theirs is the time.
- No two agree: the time that was known before goes on; without one, the median.
- A new time that differs from the one before by more than ``STEP_S`` must hold for ``SETTLE_S``
  before it counts. So a jump that is put right again soon has no effect, even where all clocks
  jump together because they are one (a laptop).
- A new time that is shown only by clocks that have jumped to it is unconfirmed, and must hold for
  ``UNCONFIRMED_S``: they may all run on one machine whose clock is wrong for hours. It is confirmed
  by a clock that showed it before, or if a time service keeps the own clock and that shows it too.

Pure: every reading is an argument. Seconds everywhere, wall times since the Unix epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

STEP_S = 2.0  # clocks that differ by less agree
SETTLE_S = 30.0  # how long a new time must hold
UNCONFIRMED_S = 86_400.0  # and one that only clocks show that have jumped to it
LONGEST_TRIP_S = 1.0  # an answer that took longer says too little
LONGEST_AGE_S = 3600.0  # of an observation

_OWN = "own"  # the name of this node's wall clock


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What both clocks of this node showed at one moment."""

    wall_s: float
    since_boot_s: float

    @property
    def ahead_s(self) -> float:
        """How far the wall clock is ahead of the time since boot."""
        return self.wall_s - self.since_boot_s


class ClusterTime:
    """The time of the cluster, as one process knows it. Not safe for threads."""

    def __init__(self, first: ClockReading) -> None:
        self._ahead_s = first.ahead_s  # the time that counts
        self._follows_own = True
        self._settled = False  # other clocks were compared at least once
        self._others: dict[str, ClockReading] = {}
        self._proposed: tuple[float, float] | None = None  # another time, and since when
        # How far each clock is ahead of the time since boot, and since when it shows that.
        self._steady: dict[str, tuple[float, float]] = {}

    def now_s(self, own: ClockReading) -> float:
        """Return the time. The own clock counts as long as it runs evenly and is believed."""
        if self._follows_own and abs(own.ahead_s - self._ahead_s) <= STEP_S:
            self._ahead_s = own.ahead_s
        return own.since_boot_s + self._ahead_s

    def observe(self, name: str, wall_s: float, sent: ClockReading, answered: ClockReading) -> bool:
        """Take what another clock showed between ``sent`` and ``answered``.

        Return False if the answer took too long to say anything.
        """
        trip_s = answered.since_boot_s - sent.since_boot_s
        if trip_s > LONGEST_TRIP_S:
            return False
        shown = ClockReading(wall_s, sent.since_boot_s + trip_s / 2)
        self._others[name] = shown
        self._note_steadiness(name, shown)
        return True

    def compare(self, own: ClockReading, *, is_synchronised: bool = True) -> None:
        """Decide anew which time counts. Call it after every round of observations.

        ``is_synchronised``: a time service keeps the own clock.
        """
        self._note_steadiness(_OWN, own)
        wanted_s, follows_own = self._judge(own)
        if not self._settled or abs(wanted_s - self._ahead_s) <= STEP_S:
            self._take(wanted_s, follows_own)
        elif self._proposed is None or abs(wanted_s - self._proposed[0]) > STEP_S:
            self._follows_own = False  # counts on by the time since boot meanwhile
            self._proposed = (wanted_s, own.since_boot_s)
        else:
            is_confirmed = (follows_own and is_synchronised) or self._was_shown_before(wanted_s)
            held_s = own.since_boot_s - self._proposed[1]
            if held_s >= (SETTLE_S if is_confirmed else UNCONFIRMED_S):
                self._take(wanted_s, follows_own)
        self._settled = self._settled or bool(self._others)

    def differences(self, own: ClockReading) -> Mapping[str, float]:
        """Return the clocks that are off by more than ``STEP_S``: name -> seconds ahead.

        "own" is the wall clock of this node.
        """
        clocks = {_OWN: own, **self._others}
        off = {name: shown.ahead_s - self._ahead_s for name, shown in clocks.items()}
        return {name: by_s for name, by_s in off.items() if abs(by_s) > STEP_S}

    def _note_steadiness(self, name: str, shown: ClockReading) -> None:
        known = self._steady.get(name)
        if known is None or abs(shown.ahead_s - known[0]) > STEP_S:
            self._steady[name] = (shown.ahead_s, shown.since_boot_s)

    def _was_shown_before(self, wanted_s: float) -> bool:
        """Whether a clock showed the proposed time well before it was proposed."""
        assert self._proposed is not None
        before_s = self._proposed[1] - SETTLE_S
        return any(
            abs(ahead_s - wanted_s) <= STEP_S and since_s <= before_s
            for ahead_s, since_s in self._steady.values()
        )

    def _take(self, ahead_s: float, follows_own: bool) -> None:
        self._ahead_s, self._follows_own, self._proposed = ahead_s, follows_own, None

    def _judge(self, own: ClockReading) -> tuple[float, bool]:
        """Return the time that most clocks show, and whether the own clock is among them."""
        # Only recent readings: even boot time drifts in the long run.
        oldest_s = own.since_boot_s - LONGEST_AGE_S
        others = [one.ahead_s for one in self._others.values() if one.since_boot_s >= oldest_s]
        if not others or any(abs(own.ahead_s - other) <= STEP_S for other in others):
            return own.ahead_s, True
        if len(others) > 1 and max(others) - min(others) <= STEP_S:
            return median(others), False
        if self._settled:
            return self._ahead_s, False
        # Nothing is known yet: of two clocks the own one, of more the one in the middle.
        return (own.ahead_s, True) if len(others) == 1 else (median([own.ahead_s, *others]), False)
