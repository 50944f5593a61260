"""Instants that requests name: RFC 3339 texts with an offset, in UTC from then on."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator

from shoal.core.timing.logical_time import logical_time

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt _]")


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside of the years 1 to 9999 in UTC") from None


def _written(value: Any) -> Any:
    # pydantic would read numbers, and texts of digits, as seconds since 1970.
    if isinstance(value, datetime) or (isinstance(value, str) and _TIME.match(value)):
        return value
    raise ValueError("must be a time with an offset, such as 2026-01-31T06:00:00Z")


Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_written, json_schema_input_type=AwareDatetime),
    AfterValidator(_in_utc),
]
# Of a run: a day or more from the ends of the calendar, so that every time zone can show it.
LogicalTime = Annotated[
    AwareDatetime,
    BeforeValidator(_written, json_schema_input_type=AwareDatetime),
    AfterValidator(logical_time),
]
