"""What happens around now."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field, computed_field

from shoal.api.schemas.common import TIME, Page, SaidOut, example
from shoal.api.schemas.runs.instances import EXPECTED_END, LATE_AFTER
from shoal.core.runs.states import WorkflowState
from shoal.core.runs.why import reasons

_WAITS = {
    "code": "tasks.queued",
    "arguments": {"tasks": 3},
    "text": "tasks that wait for a worker: 3",
}
_RUN = {
    "id": 17,
    "version": 4,
    "state": "RUNNING",
    "reason": None,
    "logical_time": TIME,
    "created_at": TIME,
    "started_at": TIME,
    "finished_at": None,
    "is_resolved": False,
    "waits_for": _WAITS,
    "expected_end_at": TIME,
    "late_after_at": TIME,
    "reason_said": None,
}
_LATE: dict[str, Any] = {
    "said": {
        "code": "fire.late",
        "arguments": {"schedule": 7, "at": TIME},
        "text": f"schedule 7 should have fired at {TIME}",
    },
    "since": TIME,
    "instance_id": None,
    "schedule_id": 7,
}
_FIRE = {"schedule_id": 7, "at": TIME}
_LANE = {
    "project": "flights",
    "workflow": "daily",
    "rank": "late",
    "runs": [_RUN],
    "is_more": False,
    "late": [_LATE],
    "next_fires": [_FIRE],
}


class TodayRun(BaseModel):
    """A run in a lane."""

    model_config = example(_RUN)

    id: int
    version: int
    state: WorkflowState
    reason: str | None
    logical_time: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    is_resolved: bool = Field(
        description="It has failed, and a newer success makes that good: one for the same logical "
        "time; if somebody had started it by hand, any that is not of a backfill."
    )
    waits_for: SaidOut | None = Field(
        description="What keeps all of it; null: something of it runs, or it has ended."
    )
    expected_end_at: datetime | None = Field(description=EXPECTED_END)
    late_after_at: datetime | None = Field(description=LATE_AFTER)

    @computed_field(description="The reason for programs; null: there is none, or text alone.")  # type: ignore[prop-decorator]
    @property
    def reason_said(self) -> SaidOut | None:
        """The reason with its code."""
        return SaidOut.of(reasons.of_instance(self.state, self.reason))


class LateOut(BaseModel):
    """Something that should have happened by now."""

    model_config = example(_LATE)

    said: SaidOut
    since: datetime
    instance_id: int | None
    schedule_id: int | None


class FireOut(BaseModel):
    """A fire time to come."""

    model_config = example(_FIRE)

    schedule_id: int
    at: datetime


class LaneOut(BaseModel):
    """A workflow around now."""

    model_config = example(_LANE)

    project: str
    workflow: str
    rank: str = Field(
        description="What it stands for in the list, the first that is true: `late`, `failed` (a "
        "run that is not `is_resolved`), `waiting`, `running`, `done`."
    )
    runs: list[TodayRun] = Field(description="Newest first, 50 at most.")
    is_more: bool = Field(description="Whether it has more runs than these.")
    late: list[LateOut]
    next_fires: list[FireOut] = Field(description="Until the window ends; five of each schedule.")


class TodayOut(Page[LaneOut]):
    """The window, how many workflows stand for what, and a page of them."""

    model_config = example(
        {
            "since": TIME,
            "until": TIME,
            "now": TIME,
            "ranks": {"late": 1, "failed": 0, "waiting": 2, "running": 5, "done": 12},
            "is_more": False,
            "items": [_LANE],
            "next": None,
        }
    )

    since: datetime
    until: datetime
    now: datetime = Field(description="By the clock of the API.")
    ranks: dict[str, int] = Field(description="How many workflows stand for what, on all pages.")
    is_more: bool = Field(
        description="Whether there is more than was looked at: the 2,000 newest runs of the "
        "window, the 2,000 newest that have been open since before it, the 2,000 next fires."
    )
