"""A run against what is usual for it."""

from datetime import date, datetime

from pydantic import Field

from shoal.api.schemas.common import Answer
from shoal.core.insight.comparison import Verdict
from shoal.core.insight.expectation import Basis
from shoal.core.runs.states import TaskState, WorkflowState


class UsualOut(Answer):
    """How long something usually takes: of what succeeded in 60 days, started at such a time."""

    weekday: int = Field(description="Of which starts it is: 0 is Monday, -1 any.")
    hour: int = Field(description="UTC; -1: any.")
    n: int = Field(description="How many durations.")
    p50_s: float
    p95_s: float
    mad_s: float = Field(description="The median of all |x - p50|.")
    late_after_s: float = Field(description="What takes longer is late: max(1.5 p95, p50 + 3 MAD).")
    wait_n: int = Field(description="How many waits.")
    wait_p50_s: float | None = Field(
        description="Of tasks in the queue, of runs from their creation to their start."
    )
    wait_p95_s: float | None
    wait_mad_s: float | None


class ComparedOut(Answer):
    """What took some time, beside what is usual."""

    verdict: Verdict = Field(
        description="`usual`: it differs from the median by no more than three times the MAD, a "
        "tenth of the median, or a second, whichever is most. `unknown`: it has not begun, or "
        "fewer than 5 are known. What goes on is not called `faster`."
    )
    took_s: float | None = Field(description="Up to now, if it goes on; null: it has not begun.")
    waited_s: float | None = Field(
        description="Of a task in the queue, of a run from its creation to its start."
    )
    difference_s: float | None = Field(description="`took_s` - p50.")
    wait_difference_s: float | None = Field(description="`waited_s` - the median wait.")
    usual: UsualOut | None = Field(description="Null: nothing is known.")


class ComparedTaskOut(ComparedOut):
    """The newest attempt of a task."""

    task: str
    task_instance_id: int
    attempt: int
    state: TaskState
    is_critical: bool = Field(
        description="Whether it is on the critical path: the end of the run has waited for it."
    )
    path_wait_s: float | None = Field(
        description="If it is: from the end of the link before it, or the start of the run, to "
        "its start; earlier attempts of it included."
    )
    effect_s: float | None = Field(
        description="By how much it has made the run longer than usual; negative: shorter. What "
        "it took beyond the median, and `path_wait_s` beyond the median wait. Null: it is not on "
        "the path, or nothing is known."
    )


class BaselineOut(Answer):
    """A run against what is usual for it: the run, and its tasks, those first that made it slower.

    Without results, `of` is null and all verdicts are `unknown`.
    """

    instance_id: int
    project: str
    workflow: str
    version: int
    state: WorkflowState
    of: date | None = Field(description="As of which day baselines are; null: there are none.")
    started_at: datetime | None
    finished_at: datetime | None
    late_after_at: datetime | None = Field(
        description="Of an open run: from then on it takes longer than is usual."
    )
    expected_end_at: datetime | None = Field(description="Of an open run.")
    expected_by: Basis | None = Field(
        description="What that is made of: its open `tasks`, or the `run`s before it."
    )
    run: ComparedOut
    tasks: list[ComparedTaskOut]
