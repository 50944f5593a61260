"""Which logical times runs may have.

A logical time is shown in the time zones of workflows and moved by a day for business dates. At
the ends of the calendar (the years 1 to 9999) neither works, so times within a day of them are
refused wherever a request, a command or a date of a backfill names one.
"""

from datetime import UTC, datetime

FIRST = datetime(1, 1, 2, tzinfo=UTC)
LAST = datetime(9999, 12, 30, 23, 59, 59, 999_999, tzinfo=UTC)
RANGE = "0001-01-02T00:00:00Z to 9999-12-30T23:59:59Z"


class LogicalTimeOutOfRange(ValueError):
    """A logical time too near to the end of the calendar."""

    def __init__(self, value: object) -> None:
        super().__init__(
            f"invalid logical time {str(value)[:50]!r}: it must lie in the range {RANGE}"
        )


def logical_time(moment: datetime) -> datetime:
    """Return an aware ``moment`` in UTC. Raises LogicalTimeOutOfRange."""
    try:
        in_utc = moment.astimezone(UTC)
    except OverflowError:
        raise LogicalTimeOutOfRange(moment.isoformat()) from None
    if not FIRST <= in_utc <= LAST:
        raise LogicalTimeOutOfRange(moment.isoformat())
    return in_utc
