"""A worker's times by the cluster's clock. The worker's own may be wrong by any amount."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

AGREE_S = 2.0  # a difference that small may be the call's way here


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """The clock of a worker as one call showed it.

    ``now``: when the call came, aware. ``sent_at``: when the worker sent it, by its own clock, in
    seconds since the epoch; 0 if it did not say (an older worker).
    """

    now: datetime
    sent_at: float

    def instant(self, timestamp: float) -> datetime:
        """Return the cluster's time of a worker's ``timestamp``; never later than now.

        If its clock jumped between the moment and the call, the answer is wrong by as much.
        """
        try:
            moment = datetime.fromtimestamp(timestamp, UTC) + timedelta(seconds=self._behind_s)
        except (ValueError, OverflowError, OSError):
            return self.now
        return min(moment, self.now)

    @property
    def _behind_s(self) -> float:
        """How far the worker's clock is behind, 0 if it is right or that is not known."""
        behind_s = self.now.timestamp() - self.sent_at
        return behind_s if self.sent_at and abs(behind_s) > AGREE_S else 0.0
