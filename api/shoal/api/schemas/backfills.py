"""Backfills: requests, plans, and how far they have come."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pydantic import Field

from shoal.api.schemas.commands import CommandOut
from shoal.api.schemas.common import Answer
from shoal.core.access.authorization import Thing
from shoal.core.backfill.request import BackfillRequest, BackfillRunState, BackfillState


class BackfillIn(BackfillRequest):
    """A workflow and its dates: either the range `from` to `to`, or `dates`."""

    def things(self) -> Iterator[tuple[Thing, int | str]]:
        """Yield what the backfill is about."""
        yield Thing.PROJECT, self.project


class PlannedOut(Answer):
    """One line of a plan."""

    position: int = Field(description="Its place in the order.")
    project: str
    workflow: str
    logical_time: datetime
    skipped: str | None = Field(description="Why it is left out; null: it runs.")


class PlanOut(Answer):
    """What a backfill would run, as of now."""

    total: int
    to_run: int = Field(description="How many are not left out.")
    runs: list[PlannedOut] = Field(description="With `dry_run` all of them, else empty.")


class BackfillAccepted(Answer):
    """The answer to a request for a backfill."""

    plan: PlanOut | None = Field(description="Null: it was asked for before, with the same key.")
    command: CommandOut | None = Field(
        description="Once it is DONE, its `backfill_id` names the backfill; null: a dry run."
    )


class BackfillOut(Answer):
    """A backfill and how far it has come."""

    id: int
    project: str
    workflow: str
    state: BackfillState
    reason: str | None
    request: dict[str, Any] = Field(description="What was asked for, without defaults.")
    counts: dict[BackfillRunState, int] = Field(description="How many dates are in which state.")
    total: int
    requested_by: str
    command_id: int
    created_at: datetime
    finished_at: datetime | None


class BackfillRunOut(Answer):
    """One date of a backfill."""

    position: int = Field(description="Its place in the order.")
    project: str
    workflow: str
    logical_time: datetime
    state: BackfillRunState
    reason: str | None
    tries: int = Field(description="How many runs were asked for.")
    instance_id: int | None = Field(description="Of the newest try.")
