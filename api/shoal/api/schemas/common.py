"""Base classes and field types that all schemas share."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from shoal.core.runs.why.codes import Code
from shoal.core.timing.logical_time import logical_time

T = TypeVar("T")
# No control characters: neither terminals nor lists of one line each can show them.
ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt _]")
PriorityName = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside of the years 1 to 9999 in UTC") from None


def _written(value: Any) -> Any:
    # pydantic would take numbers, and texts of digits, for seconds since 1970.
    if isinstance(value, datetime) or (isinstance(value, str) and _TIME.match(value)):
        return value
    raise ValueError("must be a time with an offset, such as 2026-01-31T06:00:00Z")


Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_written, json_schema_input_type=AwareDatetime),
    AfterValidator(_in_utc),
]


# Of a run: within the calendar, so far from its ends that every time zone can show it.
LogicalTime = Annotated[
    AwareDatetime,
    BeforeValidator(_written, json_schema_input_type=AwareDatetime),
    AfterValidator(logical_time),
]


class Answer(BaseModel):
    """Base of answers: read from the attributes of a record."""

    model_config = ConfigDict(from_attributes=True)


class Page(Answer, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(
        default=None, description="Cursor of the next page; null on the last one."
    )


class Strict(BaseModel):
    """Base of request bodies: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class SaidOut(Answer):
    """A sentence, and what a program needs to say it in another language."""

    code: Code = Field(description="What is said. Codes and their arguments keep their meaning.")
    arguments: dict[str, str | int | float | None]
    text: str = Field(description="In English.")

    @classmethod
    def of(cls, said: Any) -> Self | None:
        """Return what is shown of it; None: nothing is said."""
        return None if said is None else cls.model_validate(said)
