"""Failures of one cause."""

from datetime import date, datetime

from pydantic import Field

from shoal.api.schemas.common import Answer, Page
from shoal.api.schemas.insight.window import WindowOut


class CountOfDay(Answer):
    """How many there were on a day."""

    day: date
    count: int


class FailurePlaceOut(Answer):
    """A task that failed so."""

    project: str
    workflow: str
    task: str
    count: int


class FailureGroupOut(Answer):
    """Attempts that failed with the same fingerprint, in all workflows that the caller sees."""

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

    total: int = Field(description="Attempts that failed in the window, in all groups.")
