"""Backfills: requests, plans, and how far they have come."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from shoal.api.schemas.commands import CommandOut
from shoal.api.schemas.common import TIME, example
from shoal.core.access.authorization import Thing
from shoal.core.backfill.request import BackfillRequest, BackfillRunState, BackfillState

_REQUEST: dict[str, Any] = {
    "project": "flights",
    "workflow": "daily",
    "from": "2026-01-01",
    "to": "2026-01-31",
    "parallel": 4,
}
_PLANNED: dict[str, Any] = {
    "position": 0,
    "project": "flights",
    "workflow": "daily",
    "logical_time": TIME,
    "skipped": None,
}
_PLAN: dict[str, Any] = {"total": 1, "to_run": 1, "runs": [_PLANNED]}
_BACKFILL: dict[str, Any] = {
    "id": 7,
    "project": "flights",
    "workflow": "daily",
    "state": "RUNNING",
    "reason": None,
    "request": _REQUEST,
    "counts": {"SUCCEEDED": 12, "STARTED": 4, "WAITING": 15},
    "total": 31,
    "requested_by": "ada",
    "command_id": 12,
    "created_at": TIME,
    "finished_at": None,
}


class BackfillIn(BackfillRequest):
    """A workflow and its dates: either the range `from` to `to`, or `dates`."""

    model_config = ConfigDict(json_schema_extra={"examples": [_REQUEST]})

    def things(self) -> Iterator[tuple[Thing, int | str]]:
        """Yield what the backfill is about."""
        yield Thing.PROJECT, self.project


class PlannedOut(BaseModel):
    """One line of a plan."""

    model_config = example(_PLANNED)

    position: int = Field(description="Its place in the order.")
    project: str
    workflow: str
    logical_time: datetime
    skipped: str | None = Field(description="Why it is left out; null: it runs.")


class PlanOut(BaseModel):
    """What a backfill would run, as of now."""

    model_config = example(_PLAN)

    total: int
    to_run: int = Field(description="How many are not left out.")
    runs: list[PlannedOut] = Field(description="With `dry_run` all of them, else empty.")


class BackfillAccepted(BaseModel):
    """The answer to a request for a backfill."""

    model_config = example({"plan": _PLAN, "command": None})

    plan: PlanOut | None = Field(description="Null: it was asked for before, with the same key.")
    command: CommandOut | None = Field(
        description="Once it is DONE, its `backfill_id` names the backfill; null: a dry run."
    )


class BackfillOut(BaseModel):
    """A backfill and how far it has come."""

    model_config = example(_BACKFILL)

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


class BackfillRunOut(BaseModel):
    """One date of a backfill."""

    model_config = example(
        {
            "position": 0,
            "project": "flights",
            "workflow": "daily",
            "logical_time": TIME,
            "state": "SUCCEEDED",
            "reason": None,
            "tries": 1,
            "instance_id": 17,
        }
    )

    position: int = Field(description="Its place in the order.")
    project: str
    workflow: str
    logical_time: datetime
    state: BackfillRunState
    reason: str | None
    tries: int = Field(description="How many runs were asked for.")
    instance_id: int | None = Field(description="Of the newest try.")
