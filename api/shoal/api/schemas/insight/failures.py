"""Failures of one cause."""

from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, Field

from shoal.api.schemas.common import TIME, Page, example
from shoal.api.schemas.insight.window import WINDOW, WindowOut

_PLACE: dict[str, Any] = {
    "project": "flights",
    "workflow": "daily",
    "task": "fetch",
    "count": 12,
}
_GROUP: dict[str, Any] = {
    "fingerprint": "1f2e3d4c5b6a7980",
    "sample": "ConnectionError: warehouse.example.org refused the connection",
    "count": 14,
    "first_seen": TIME,
    "last_seen": TIME,
    "workflows": 2,
    "by_day": [{"day": "2026-11-21", "count": 14}],
    "where": [_PLACE],
    "is_more": False,
}


class CountOfDay(BaseModel):
    """How many there were on a day."""

    model_config = example({"day": "2026-11-21", "count": 14})

    day: date
    count: int


class FailurePlaceOut(BaseModel):
    """A task that failed so."""

    model_config = example(_PLACE)

    project: str
    workflow: str
    task: str
    count: int


class FailureGroupOut(BaseModel):
    """Attempts that failed with the same fingerprint, in all workflows that the caller sees."""

    model_config = example(_GROUP)

    fingerprint: str = Field(
        description="The same of error lines that differ in numbers, ids, times, paths and quoted "
        "texts alone."
    )
    sample: str = Field(description="The error line of the newest.")
    count: int = Field(description="In the window.")
    first_seen: datetime | None = Field(
        description="In the window or the 60 days before its last days."
    )
    last_seen: datetime | None
    workflows: int = Field(description="In how many workflows.")
    by_day: list[CountOfDay]
    where: list[FailurePlaceOut] = Field(description="The most first, 20 at most.")
    is_more: bool = Field(description="Whether more tasks failed so.")


class FailureGroupsPage(WindowOut, Page[FailureGroupOut]):
    """A page of groups, the most first."""

    model_config = example({**WINDOW, "total": 14, "items": [_GROUP], "next": None})

    total: int = Field(description="Attempts that failed in the window, in all groups.")
