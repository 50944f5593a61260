"""Between wall clocks and instants: where a zone's clock skips or repeats time.

A *wall* time is a naive datetime, what a clock on the wall of the zone shows. Almost every wall
time happens once. When the clock goes forward some happen never (a *gap*); when it goes back
some happen twice (an *overlap*, with a first and a second pass; PEP 495 numbers them fold 0
and 1). Works for every ``tzinfo`` that follows PEP 495, whole seconds only.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """One moment at which a zone's offset from UTC changes."""

    instant: datetime
    """First instant of the new offset, in UTC."""
    before: timedelta
    """Offset from UTC just before ``instant``."""
    after: timedelta
    """Offset from UTC from ``instant`` on."""

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    @property
    def start(self) -> datetime:
        """First wall time that is skipped or repeated."""
        return self.instant.replace(tzinfo=None) + min(self.before, self.after)

    @property
    def end(self) -> datetime:
        """First wall time behind those that are skipped or repeated."""
        return self.instant.replace(tzinfo=None) + max(self.before, self.after)


def change_at(wall: datetime, zone: tzinfo) -> ClockChange | None:
    """Return the change that skips or repeats ``wall``; None if ``wall`` happens once."""
    before, after = _offset(wall, zone, 0), _offset(wall, zone, 1)
    if before == after:
        return None
    utc = wall.replace(tzinfo=UTC, fold=0)
    early, late = utc - max(before, after), utc - min(before, after)
    while late - early > SECOND:
        middle = early + timedelta(seconds=(late - early) // SECOND // 2)
        if middle.astimezone(zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return ClockChange(late, before, after)


def at(wall: datetime, zone: tzinfo, fold: int = 0) -> datetime:
    """Return the instant of ``wall`` as a datetime of ``zone``.

    ``fold`` picks the pass if ``wall`` happens twice. A skipped ``wall`` moves forward by the
    length of the gap.
    """
    utc = wall.replace(tzinfo=UTC, fold=0) - _offset(wall, zone, fold)
    return utc.astimezone(zone)


def first_instant_from(wall: datetime, zone: tzinfo) -> datetime:
    """Return the first instant at which the clock shows ``wall`` or, in a gap, jumps past it."""
    change = change_at(wall, zone)
    if change is not None and change.is_gap:
        return change.instant.astimezone(zone)
    return at(wall, zone)


def shown_in(moment: datetime, zone: tzinfo) -> datetime:
    """Return an aware ``moment`` by the clock of ``zone``; in UTC where that clock cannot show it.

    That is at the ends of the calendar, before the year 1 or after 9999.
    """
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


def is_aware(moment: datetime) -> bool:
    return moment.utcoffset() is not None


def _offset(wall: datetime, zone: tzinfo, fold: int) -> timedelta:
    offset = wall.replace(tzinfo=zone, fold=fold).utcoffset()
    if offset is None:
        raise ValueError(f"time zone {zone!r} has no offset from UTC at {wall}")
    return offset
