"""Our cron as a trigger of APScheduler 3, and when a job with a trigger is due.

``shoal.runtime.periodic_jobs`` runs jobs with it by the cluster's clock.
"""

from datetime import UTC, datetime

# APScheduler 3 publishes neither types nor stubs, so its base class is Any to mypy.
from apscheduler.triggers.base import BaseTrigger

from shoal.core.timing.cron.expression import Cron


class ShoalCronTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires at the times of ``cron`` from ``start`` to ``end``, both included if given.

    APScheduler compares times of one zone by their wall clock, which is wrong while an hour
    repeats; so fire times are handed over in UTC. Can be pickled into a job store.
    """

    __slots__ = ("cron", "end", "start")

    def __init__(
        self, cron: Cron, *, start: datetime | None = None, end: datetime | None = None
    ) -> None:
        self.cron = cron
        self.start = _in_utc("start", start)
        self.end = _in_utc("end", end)

    def get_next_fire_time(
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime | None:
        """Return the fire time after ``previous_fire_time``, or the first one from ``now`` on.

        Times missed since ``previous_fire_time`` come one after the other: what to do with them
        is the scheduler's misfire rule.
        """
        if previous_fire_time is not None:
            moment = self.cron.next(previous_fire_time)
        else:
            moment = self._at_or_after(now)
        if moment is not None and self.start is not None and moment < self.start:
            moment = self._at_or_after(self.start)
        if moment is None or (self.end is not None and moment > self.end):
            return None
        return moment.astimezone(UTC)

    def _at_or_after(self, moment: datetime) -> datetime | None:
        return moment if self.cron.matches(moment) else self.cron.next(moment)

    def __getstate__(self) -> tuple[Cron, datetime | None, datetime | None]:
        return self.cron, self.start, self.end

    def __setstate__(self, state: tuple[Cron, datetime | None, datetime | None]) -> None:
        self.cron, self.start, self.end = state

    def __str__(self) -> str:
        return f"cron[{self.cron.expression!r} {self.cron.timezone}]"

    def __repr__(self) -> str:
        return f"<ShoalCronTrigger {self.cron!r} from {self.start} to {self.end}>"


def is_due(trigger: BaseTrigger, previous: datetime | None, now: datetime) -> bool:
    """Return whether a fire time of ``trigger`` has come since the job ran last.

    ``previous``: when that was; None: never, so the job is due. Times that were missed count as
    one. To be asked again and again, by a clock that may jump: a job that ran in what is now the
    future says nothing of when to run it again, so it is due as well.
    """
    if previous is None or now < previous:
        return True
    moment = trigger.get_next_fire_time(previous, now)
    return moment is not None and moment <= now


def _in_utc(name: str, moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if moment.utcoffset() is None:
        raise ValueError(f"{name} {moment!r} has no time zone; pass an aware datetime")
    return moment.astimezone(UTC)
