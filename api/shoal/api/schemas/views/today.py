"""What happens around now."""

from datetime import datetime

from pydantic import Field, computed_field

from shoal.api.schemas.common import Answer, Page, SaidOut
from shoal.api.schemas.runs.instances import EXPECTED_END, LATE_AFTER
from shoal.core.runs.states import WorkflowState
from shoal.core.runs.why import reasons


class TodayRun(Answer):
    """A run in a lane."""

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
        "time; if it was started manually, any run outside backfills."
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


class LateOut(Answer):
    """Something that should have happened by now."""

    said: SaidOut
    since: datetime
    instance_id: int | None
    schedule_id: int | None


class FireOut(Answer):
    """A fire time to come."""

    schedule_id: int
    at: datetime


class LaneOut(Answer):
    """A workflow around now."""

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

    since: datetime
    until: datetime
    now: datetime = Field(description="By the clock of the API.")
    ranks: dict[str, int] = Field(description="How many workflows stand for what, on all pages.")
    is_more: bool = Field(
        description="Whether there is more than was looked at: the 2,000 newest runs of the "
        "window, the 2,000 newest that have been open since before it, the 2,000 next fires."
    )
