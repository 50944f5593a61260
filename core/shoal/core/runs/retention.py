"""How long history is kept: the rules, the moments that follow from them, and what is purged.

Every rule names what is no longer needed. What may still be referred to stays whatever its
age is: see ``shoal.sql.repositories.upkeep.expired_rows``.
"""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Retention:
    """How long each kind of row is kept; None: for ever."""

    instances: timedelta | None  # finished ones, with their attempts and events
    newest: int  # finished instances of each workflow that stay whatever their age is
    events: timedelta | None
    commands: timedelta | None  # at least; and as long as what they have made
    backfills: timedelta | None  # finished ones; their instances stay as long

    @classmethod
    def of_days(
        cls, *, instances: float, newest: int, events: float, commands: float, backfills: float
    ) -> "Retention":
        """Return the rules for lengths of time in days; 0 stands for ever."""
        return cls(_days(instances), newest, _days(events), _days(commands), _days(backfills))

    def limits(self, now: datetime, before: datetime | None = None) -> "RetentionLimits":
        """Return what may go at ``now``.

        ``before``: what a user has asked for, in place of the rules. Commands stay for their
        time all the same: until then their idempotency keys are promised to be known.
        """
        commands = _ago(now, self.commands)
        if before is None:
            return RetentionLimits(
                _ago(now, self.instances),
                _ago(now, self.events),
                commands,
                _ago(now, self.backfills),
            )
        known_until = None if commands is None else min(commands, before)
        return RetentionLimits(before, before, known_until, before)


@dataclass(frozen=True)
class RetentionLimits:
    """What is older may go; None: nothing."""

    instances: datetime | None
    events: datetime | None
    commands: datetime | None
    backfills: datetime | None


@dataclass(frozen=True)
class Hours:
    """The part of the day in which masters purge by themselves; it may contain midnight."""

    start: time
    end: time
    zone: ZoneInfo

    def contains(self, now: datetime) -> bool:
        """Whether it is that part of the day. From a time to the same one is the whole day."""
        clock = now.astimezone(self.zone).time()
        if self.start < self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end


def _days(number: float) -> timedelta | None:
    return timedelta(days=number) if number > 0 else None


def _ago(now: datetime, length: timedelta | None) -> datetime | None:
    if length is None:
        return None
    try:
        return now - length
    except OverflowError:  # before the year 1
        return None


@dataclass(frozen=True)
class Counts:
    """How many rows have gone, or would go."""

    instances: int = 0
    attempts: int = 0
    events: int = 0
    commands: int = 0
    backfills: int = 0


@dataclass(frozen=True)
class NewPurge:
    """A purge about to be asked for."""

    is_rehearsal: bool = False  # count, delete nothing
    before: datetime | None = None  # None: what the masters' rules say
    project: str | None = None
    workflow_id: int | None = None
    requested_by: str = ""
    even_if_not_exported: bool = False  # the exported history may lack it then


@dataclass(frozen=True)
class Purge:
    """A purge as it stands."""

    id: int
    asked: NewPurge
    created_at: datetime
    partitions: int
    partitions_done: int
    counts: Counts
    oldest: datetime | None  # end of the oldest instance that goes
    finished_at: datetime | None
    held: int = 0  # rows that stay only because the exported history does not have them yet
