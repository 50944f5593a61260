"""The kinds of field that definitions are made of: names, durations, levels, zones, days."""

import re
from dataclasses import dataclass
from datetime import date, datetime
from enum import IntEnum
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from shoal.core.timing.durations import parse_duration

# Names stand in paths of logs and znodes, so they are slugs.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
PARAMETER_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]


@dataclass(frozen=True)
class RefersTo:
    """Marks a field that names a thing of its own: of the project, the cluster, the tz database."""

    kind: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Tell forms what to offer."""
        return {**handler(schema), "x-ref": self.kind}


def _seconds(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a duration such as 30s, 10m, 1h30m or a number of seconds")
    return parse_duration(value)


Duration = Annotated[
    float, BeforeValidator(_seconds, json_schema_input_type=str | float), Field(ge=0)
]


PriorityName: TypeAlias = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]


class Priority(IntEnum):
    """HIGHEST (0) to LOWEST (4). Files and the API use the names."""

    HIGHEST = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3
    LOWEST = 4

    @classmethod
    def read(cls, value: Any) -> "Priority":
        """Return the level for a name (any case) or number. Raises ValueError naming all."""
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 4:
            return cls(value)
        raise ValueError(f"must be one of {', '.join(cls.__members__)} (or 0 to 4)")


Level = Annotated[
    Priority,
    BeforeValidator(Priority.read, json_schema_input_type=PriorityName),
    PlainSerializer(lambda level: level.name, return_type=str),
]


def _known_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{value!r} is not a time zone of the tz database") from None
    return value


Zone = Annotated[str, AfterValidator(_known_zone), RefersTo("zone")]

LONGEST_OWNER = 200
# No control characters: terminals, and lists with a line for each item, cannot show them.
ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _one_line(value: str) -> str:
    if _CONTROL.search(value):
        raise ValueError("must be one line without control characters")
    if value != value.strip():
        raise ValueError("must not begin or end with a space")
    return value


# A name, a team or an address to ask at. Shoal gives it no meaning, and no rights.
Owner = Annotated[str, Field(max_length=LONGEST_OWNER), AfterValidator(_one_line)]


_FIRST_YEAR, _LAST_YEAR = 1970, 2199  # as those of cron
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _written_day(value: Any) -> Any:
    if isinstance(value, str) and _DAY.fullmatch(value):
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise ValueError(f"{value!r} is not a day such as 2026-01-31")


def _written_time(value: Any) -> Any:
    # pydantic would take numbers, and texts of digits, for seconds since 1970.
    if isinstance(value, date) or (isinstance(value, str) and _DAY.match(value)):
        return value
    raise ValueError(f"{value!r} is not a day or time such as 2026-01-31 or 2026-01-31T06:00")


def _usable_time(value: datetime) -> datetime:
    if value.microsecond:
        raise ValueError("must be a whole second")
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise ValueError(f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return value


Day = Annotated[date, BeforeValidator(_written_day)]
# A time without an offset is local; the field says in which zone.
WallTime = Annotated[datetime, BeforeValidator(_written_time), AfterValidator(_usable_time)]


class Strict(BaseModel):
    """Unknown fields are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def scalar_text(value: Any) -> Any:
    """Return the text of a scalar as files write it: true, 3, 2013-01-15. Others pass through."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return value
