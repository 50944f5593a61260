"""What days and workflows an answer is about, as parameters of queries; pages of lists.

Lists are sorted by numbers, so a cursor is a place in the list. It is bound to the filters and to
the days, and the list changes with new results only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, TypeVar

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import decode_cursor, encode_cursor, filtered
from shoal.core.insight.windows import LONGEST_DAYS, DayWindow, window_of
from shoal.sql import UnitOfWork

T = TypeVar("T")


def _written(value: Any) -> Any:
    # pydantic would take numbers, and texts of digits, for seconds since 1970.
    if isinstance(value, str) and len(value) == len("2026-01-31") and value[4:5] == "-":
        return value
    raise ValueError("must be a day such as 2026-01-31")


Day = Annotated[date, BeforeValidator(_written)]


@dataclass(frozen=True)
class WindowDays:
    """The days of an answer; ``window`` and ``newest`` None: there are no results."""

    window: DayWindow | None
    newest: date | None

    def shown(self, there: Sequence[date]) -> dict[str, Any]:
        """Return the fields of ``WindowOut``; ``there``: the days that have results."""
        if self.window is None:
            names = ("first", "last", "before_first", "before_last", "until")
            return {**dict.fromkeys(names), "days": 0, "before_days": 0}
        window, before = self.window, self.window.before
        return {
            "first": window.first,
            "last": window.last,
            "days": sum(window.has(day) for day in there),
            "before_first": before.first,
            "before_last": before.last,
            "before_days": sum(before.has(day) for day in there),
            "until": self.newest,
        }


class DaysFilter(BaseModel):
    """The days of an answer that belongs to no project."""

    model_config = ConfigDict(frozen=True)

    first: Day | None = Field(
        default=None,
        alias="from",
        description="First day of the window, UTC. Default: 28 days with the last.",
        examples=["2026-01-04"],
    )
    last: Day | None = Field(
        default=None,
        alias="to",
        description="Last day of it. Default: the newest that has results. "
        f"{LONGEST_DAYS} days at most.",
        examples=["2026-01-31"],
    )

    async def days(self, uow: UnitOfWork, job: str) -> WindowDays:
        """Return the days, by what results of a job there are. Raises InvalidRequest."""
        result = await uow.rollups.newest(job)
        newest = None if result is None else result.day
        try:
            return WindowDays(window_of(newest, self.first, self.last), newest)
        except ValueError as error:
            raise InvalidRequest([FieldError("to", f"the window {error}")]) from None


class WindowFilter(DaysFilter):
    """The days and the workflows of an answer."""

    project: str | None = Field(default=None, description="Only for this project.")
    workflow: str | None = Field(default=None, description="Only for this workflow.")


Windowed = Annotated[WindowFilter, Query()]
WindowedDays = Annotated[DaysFilter, Query()]


def place_page(
    kind: str, filters: tuple[object, ...], items: Sequence[T], limit: int, cursor: str | None
) -> tuple[Sequence[T], str | None]:
    """Return the page of a list that is made as a whole, and the next cursor."""
    name = filtered(kind, *filters)
    position = decode_cursor(name, cursor, int)
    start = 0 if position is None else int(position[0])
    end = start + limit
    return items[start:end], encode_cursor(name, end) if end < len(items) else None
