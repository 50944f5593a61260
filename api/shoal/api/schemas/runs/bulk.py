"""One request about many runs or tasks."""

from typing import Any, Literal

from pydantic import BaseModel, Field, StrictInt, field_validator

from shoal.api.schemas.commands import LONGEST_REASON, MAX_NAMED_TASKS, CommandIn
from shoal.api.schemas.common import ONE_LINE, Strict, body_example, example
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
_TASK = {"task": "load", "state": "RUNNING", "becomes": "RUNNING", "ends_early": True}
_PREVIEW = {"refusal": None, "state": "STOPPING", "tasks": [_TASK], "more_tasks": 0}
_ITEM = {"id": 17, "command_id": None, "problem": None, "preview": _PREVIEW}


class BulkIn(Strict):
    """What is asked, and of which: the ids, or, without them, the filters of the query."""

    model_config = body_example({"type": "STOP", "ids": [17, 18]})

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


class TouchedTask(BaseModel):
    """A task that a request would change."""

    model_config = example(_TASK)

    task: str
    state: TaskState
    becomes: TaskState
    ends_early: bool = Field(description="Whether its process would be killed.")


class EffectOut(BaseModel):
    """What a request would do to one run, as it is now."""

    model_config = example(_PREVIEW)

    refusal: str | None = Field(description="Why it would change nothing.")
    state: WorkflowState | None = Field(description="Of the run then; null: not looked at.")
    tasks: list[TouchedTask] | None = Field(
        description="The first 100 that change; null: not looked at, or those of a new run."
    )
    more_tasks: int = Field(description="How many more change.")


class ItemProblem(BaseModel):
    """Why nothing is asked of one of many."""

    model_config = example(
        {"type": "/problems/not-found", "status": 404, "detail": "there is no workflow instance 9"}
    )

    type: str
    status: int
    detail: str


class BulkItem(BaseModel):
    """What became of one of many: a preview, a command, or a problem."""

    model_config = example(_ITEM)

    id: int
    command_id: int | None = Field(description="The command that was stored for it.")
    problem: ItemProblem | None
    preview: EffectOut | None


class BulkOut(BaseModel):
    """One result for each."""

    model_config = example({"digest": "5e1f", "is_more": False, "items": [_ITEM]})

    digest: str = Field(description="For the request that does what this preview shows.")
    is_more: bool = Field(description="Whether the filters may mean more than these; ask again.")
    items: list[BulkItem]
