"""One request about many runs or tasks."""

from typing import Any, Literal

from pydantic import Field, StrictInt, field_validator

from shoal.api.schemas.commands import LONGEST_REASON, MAX_NAMED_TASKS, CommandIn
from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.definition.fields import ONE_LINE
from shoal.core.definition.selection import SelectionMode
from shoal.core.runs.commands import CommandType
from shoal.core.runs.states import TaskState, WorkflowState

MOST_ITEMS = 500
BulkType = Literal[
    CommandType.PAUSE,
    CommandType.RESUME,
    CommandType.STOP,
    CommandType.RECOVER,
    CommandType.RERUN,
    CommandType.RERUN_TASKS,
    CommandType.KILL_TASK,
    CommandType.FORCE_SUCCESS,
]


class BulkIn(RequestBody):
    """What is asked, and of which: the ids, or, without them, the filters of the query."""

    type: BulkType
    ids: list[StrictInt] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_ITEMS,
        description="Of instances; of KILL_TASK and FORCE_SUCCESS: of task instances.",
    )
    tasks: list[str] | None = Field(
        default=None, min_length=1, max_length=MAX_NAMED_TASKS, description="Of RERUN_TASKS."
    )
    mode: SelectionMode | None = Field(default=None, description="With `tasks`.")
    reason: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_REASON,
        pattern=ONE_LINE,
        description="FORCE_SUCCESS: why, for those who look at it later.",
    )
    digest: str | None = Field(
        default=None,
        max_length=64,
        description="Of a preview: nothing is done unless exactly the same would be touched. "
        "Required with filters.",
    )

    @field_validator("ids")
    @classmethod
    def _positive(cls, ids: list[int] | None) -> list[int] | None:
        if any(not 0 < one < 2**63 for one in ids or ()):
            raise ValueError("ids are positive")
        return ids

    @property
    def is_about_tasks(self) -> bool:
        """Whether the ids are of task instances."""
        return self.type in (CommandType.KILL_TASK, CommandType.FORCE_SUCCESS)

    def command(self, one: int) -> CommandIn:
        """Return the request about one of the things."""
        name = "task_instance_id" if self.is_about_tasks else "instance_id"
        given: dict[str, Any] = {"tasks": self.tasks, "mode": self.mode, "reason": self.reason}
        return CommandIn(type=self.type, **{name: one}, **given)


class TouchedTask(Answer):
    """A task that a request would change."""

    task: str
    state: TaskState
    becomes: TaskState
    ends_early: bool = Field(description="Whether its process would be killed.")


class EffectOut(Answer):
    """What a request would do to one run, as it is now."""

    refusal: str | None = Field(description="Why it would change nothing.")
    state: WorkflowState | None = Field(description="Of the run then; null: not looked at.")
    tasks: list[TouchedTask] | None = Field(
        description="The first 100 that change; null: not checked, or all tasks of a new run."
    )
    more_tasks: int = Field(description="How many more change.")


class ItemProblem(Answer):
    """Why nothing is asked of one of many."""

    type: str
    status: int
    detail: str


class BulkItem(Answer):
    """What became of one of many: a preview, a command, or a problem."""

    id: int
    command_id: int | None = Field(description="The command that was stored for it.")
    problem: ItemProblem | None
    preview: EffectOut | None


class BulkOut(Answer):
    """One result for each."""

    digest: str = Field(description="For the request that does what this preview shows.")
    is_more: bool = Field(description="Whether the filters may mean more than these; ask again.")
    items: list[BulkItem]
