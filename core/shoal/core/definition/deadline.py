"""Deadlines: when a run of a workflow should have ended, and when that is for one run."""

import re
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator

from shoal.core.timing import wallclock
from shoal.core.timing.durations import InvalidDuration, parse_duration

LONGEST = timedelta(days=366)
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_FORMS = "must be a duration such as 90m or 4h, or a time of day such as 08:00"
_DAY = timedelta(days=1)


def _read(value: Any) -> Any:
    if isinstance(value, str) and _TIME_OF_DAY.fullmatch(value):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(_FORMS)
    if isinstance(value, str) and ":" in value:
        raise ValueError(f"{value[:40]!r} is not a time of day: write 00:00 to 23:59, as 08:00")
    try:
        seconds = parse_duration(value)
    except InvalidDuration as error:
        raise ValueError(f"{error}; or a time of day such as 08:00") from None
    if not 0 < seconds <= LONGEST.total_seconds():
        raise ValueError(f"must be longer than 0 and at most {LONGEST.days}d, or a time of day")
    return seconds


#: Seconds (float), or a time of day (``HH:MM``).
Deadline = Annotated[float | str, BeforeValidator(_read, json_schema_input_type=str | float)]


def instant_of(deadline: float | str, since: datetime, timezone: str) -> datetime:
    """Return when a run should have ended that was due, or was asked for, at ``since``.

    A duration counts from then. A time of day is the first one after it on the clock of
    ``timezone``; one that the clock skips is when it skips it, and of two the first counts.
    """
    if not isinstance(deadline, str):
        return since + timedelta(seconds=deadline)
    zone, wanted = ZoneInfo(timezone), time.fromisoformat(deadline)
    day = since.astimezone(zone).date()
    while True:
        at = wallclock.first_instant_from(datetime.combine(day, wanted), zone).astimezone(UTC)
        if at > since:
            return at
        day += _DAY
