"""Which workflows wait for which on one day."""

from datetime import date, datetime

from pydantic import BaseModel, Field

from shoal.api.schemas.common import Answer
from shoal.core.definition.kinds import LogicKind
from shoal.core.runs.states import WorkflowState


class DependencyRun(Answer):
    """A run in the window of its workflow."""

    id: int
    state: WorkflowState
    logical_time: datetime
    started_at: datetime | None
    finished_at: datetime | None


class DependencyNode(Answer):
    """A workflow, and its runs in the window of logical time that counts for the day."""

    id: str = Field(description="PROJECT/NAME.")
    project: str
    workflow: str
    is_known: bool = Field(
        description="False: there is no such workflow, or the caller may not see it."
    )
    timezone: str | None = Field(description="Whose days count for it; null: it is not known.")
    distance: int = Field(description="Steps from where the search began.")
    since: datetime = Field(description="The first logical time that counts.")
    until: datetime = Field(description="The first one behind.")
    state: WorkflowState | None = Field(description="Of the newest run; null: there is none.")
    runs: list[DependencyRun] = Field(description="The latest logical time first.")
    has_more: bool = Field(description="Whether there are earlier ones.")
    started_at: datetime | None = Field(description="When the first of `runs` began.")
    finished_at: datetime | None = Field(
        description="When the last of `runs` ended; null: one has not."
    )
    hidden: int = Field(description="How many workflows wait for it that the caller may not see.")


class DependencyTask(BaseModel):
    """Why a workflow waits: one of its tasks names the other one."""

    task: str
    kind: LogicKind
    date: str | None = Field(description="Which runs a DEPENDENT task looks for.")
    of_task: str | None = Field(description="The task of these runs that counts; null: all.")


class DependencyEdge(Answer):
    """`target` waits for `source`."""

    source: str
    target: str
    tasks: list[DependencyTask]
    is_allowed: bool = Field(
        description="False: its project does not let the tasks of the other one see or run it."
    )
    since: datetime = Field(
        description="The first logical time of the runs of `source` that runs of `target` wait "
        "for. It may be on another day."
    )
    until: datetime = Field(description="The first one behind.")
    run: DependencyRun | None = Field(description="The newest of these runs; null: there is none.")


class DependencyGraphOut(Answer):
    """Workflows and which wait for which. A workflow may wait for itself, of another day."""

    date: date
    nodes: list[DependencyNode]
    edges: list[DependencyEdge]
    critical: list[str] = Field(
        description="The workflows that decide when the last one is done, the first one first."
    )
    is_cut: bool = Field(description="Whether there are more workflows than one answer shows.")
