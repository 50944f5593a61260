"""Cron schedules with time zones: when does this fire next?

Every fire time is an instant, and fire times are strictly increasing in UTC. Where a zone's clock
jumps, two options decide; left alone they follow Vixie cron's rule, by the kind of expression:

============  ====================================  ==================================
              clock goes forward (``on_gap``)       clock goes back (``on_overlap``)
============  ====================================  ==================================
fixed time    ``shift``: a skipped time fires at    ``first``: once, in the first pass
              the first instant after the gap
interval      ``skip``: skipped times do not fire   ``both``: in both passes
============  ====================================  ==================================

An expression is an interval if its second, minute or hour has ``*``, ``/`` or ``-``. Several
skipped times of one gap fire once.

Fire times carry the schedule's zone. Python compares two datetimes of *one* zone by the wall
clock, which repeats itself: compare fire times after ``astimezone(UTC)``.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shoal.core.timing.cron.fields import InvalidCron, read
from shoal.core.timing.cron.pattern import FIRST_YEAR, LAST_YEAR, Pattern
from shoal.core.timing.wallclock import SECOND, at, change_at, is_aware

__all__ = ["Cron", "InvalidCron", "OnGap", "OnOverlap", "parse"]

OnGap = Literal["shift", "skip"]
OnOverlap = Literal["first", "last", "both"]

_PASSES: dict[OnOverlap, tuple[int, ...]] = {"first": (0,), "last": (1,), "both": (0, 1)}
# A margin of two days covers every zone's distance from UTC.
_EARLIEST = datetime(FIRST_YEAR - 1, 12, 30, tzinfo=UTC)
_LATEST = datetime(LAST_YEAR + 1, 1, 3, tzinfo=UTC)


def parse(
    expression: str,
    timezone: str = "UTC",
    *,
    on_gap: OnGap | None = None,
    on_overlap: OnOverlap | None = None,
) -> "Cron":
    """Read a Quartz (6 or 7 fields) or Unix (5 fields) cron expression.

    ``timezone`` is a name of the tz database. ``on_gap`` and ``on_overlap`` override the rule
    described above. Raises InvalidCron, which names the field at fault or the unknown zone.
    """
    if on_gap not in (None, "shift", "skip"):
        raise InvalidCron(expression, "allowed are shift and skip", "on_gap", on_gap)
    if on_overlap is not None and on_overlap not in _PASSES:
        raise InvalidCron(expression, f"allowed are {', '.join(_PASSES)}", "on_overlap", on_overlap)
    pattern = read(expression)
    gap = on_gap or ("skip" if pattern.is_interval else "shift")
    overlap = on_overlap or ("both" if pattern.is_interval else "first")
    return Cron(expression, timezone, gap, overlap, pattern, _zone(expression, timezone))


def _zone(expression: str, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reason = "the tz database has no such zone; write a name like Europe/Berlin or UTC"
        raise InvalidCron(expression, reason, "time zone", name) from None


@dataclass(frozen=True, slots=True)
class Cron:
    """One parsed schedule; build it with ``parse``. Fires from 1970 to 2199."""

    expression: str
    timezone: str
    on_gap: OnGap
    on_overlap: OnOverlap
    _pattern: Pattern = field(repr=False, compare=False)
    _zone: ZoneInfo = field(repr=False, compare=False)

    def next(self, after: datetime) -> datetime | None:
        """Return the first fire time strictly after ``after``; None if there is none.

        Raises ValueError if ``after`` has no time zone.
        """
        now = _whole_utc(after)
        if now > _LATEST:
            return None
        now = max(now, _EARLIEST)
        local = now.astimezone(self._zone)
        wall = _naive(local)
        start = wall + SECOND
        change = change_at(wall, self._zone)
        if change is not None:  # inside an overlap: the rest of this pass, then the second one
            for fold in self._passes_from(local.fold):
                found = self._pattern.at_or_after(start if fold == local.fold else change.start)
                if found is not None and found < change.end:
                    return at(found, self._zone, fold)
            start = change.end
        return self._search_forward(start)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire time strictly before ``before``; None if there is none.

        Raises ValueError if ``before`` has no time zone.
        """
        now = _whole_utc(before)
        if now < _EARLIEST:
            return None
        if before.microsecond:
            now += SECOND
        now = min(now, _LATEST)
        local = now.astimezone(self._zone)
        wall = _naive(local)
        end = wall - SECOND
        change = change_at(wall, self._zone)
        if change is not None:  # inside an overlap: the start of this pass, then the first one
            for fold in self._passes_until(local.fold):
                last = end if fold == local.fold else change.end - SECOND
                found = self._pattern.at_or_before(last)
                if found is not None and found >= change.start:
                    return at(found, self._zone, fold)
            end = change.start - SECOND
        return self._search_backward(end, now)

    def matches(self, instant: datetime) -> bool:
        """Return whether ``instant`` is a fire time. Raises ValueError without a time zone."""
        now = _whole_utc(instant)
        if instant.microsecond or not _EARLIEST <= now <= _LATEST:
            return False
        local = now.astimezone(self._zone)
        wall = _naive(local)
        if self._pattern.contains(wall):
            change = change_at(wall, self._zone)
            if change is None or local.fold in _PASSES[self.on_overlap]:
                return True
        return self._ends_gap_with_fire(now, wall)

    def makes_up(self, fire_time: datetime) -> bool:
        """Return whether a fire time makes up for times that the clock has just skipped."""
        now = _whole_utc(fire_time)
        return self._ends_gap_with_fire(now, _naive(now.astimezone(self._zone)))

    def _search_forward(self, start: datetime) -> datetime | None:
        while (wall := self._pattern.at_or_after(start)) is not None:
            change = change_at(wall, self._zone)
            if change is None:
                return at(wall, self._zone)
            if not change.is_gap:
                return at(wall, self._zone, min(_PASSES[self.on_overlap]))
            if self.on_gap == "shift":
                return change.instant.astimezone(self._zone)
            start = change.end
        return None

    def _search_backward(self, end: datetime, now: datetime) -> datetime | None:
        while (wall := self._pattern.at_or_before(end)) is not None:
            change = change_at(wall, self._zone)
            if change is None:
                return at(wall, self._zone)
            if not change.is_gap:
                return at(wall, self._zone, max(_PASSES[self.on_overlap]))
            # At the very end of a gap the shifted time is not *before* now.
            if self.on_gap == "shift" and change.instant < now:
                return change.instant.astimezone(self._zone)
            end = change.start - SECOND
        return None

    def _ends_gap_with_fire(self, now: datetime, wall: datetime) -> bool:
        if self.on_gap == "skip":
            return False
        gap_start = _naive((now - SECOND).astimezone(self._zone)) + SECOND
        found = self._pattern.at_or_before(wall - SECOND)
        return found is not None and found >= gap_start

    def _passes_from(self, fold: int) -> tuple[int, ...]:
        return tuple(one for one in _PASSES[self.on_overlap] if one >= fold)

    def _passes_until(self, fold: int) -> tuple[int, ...]:
        return tuple(one for one in reversed(_PASSES[self.on_overlap]) if one <= fold)

    def __reduce__(self) -> tuple[object, tuple[str, str, OnGap, OnOverlap]]:
        return _restore, (self.expression, self.timezone, self.on_gap, self.on_overlap)


def _restore(expression: str, timezone: str, on_gap: OnGap, on_overlap: OnOverlap) -> Cron:
    return parse(expression, timezone, on_gap=on_gap, on_overlap=on_overlap)


def _naive(local: datetime) -> datetime:
    return local.replace(tzinfo=None, fold=0)


def _whole_utc(moment: datetime) -> datetime:
    """Return ``moment`` in UTC without its fraction of a second, kept within what can fire."""
    if not is_aware(moment):
        raise ValueError(f"{moment!r} has no time zone; pass an aware datetime")
    if moment.year < FIRST_YEAR - 1:
        return _EARLIEST - SECOND
    if moment.year > LAST_YEAR + 2:
        return _LATEST + SECOND
    return moment.astimezone(UTC).replace(microsecond=0)
