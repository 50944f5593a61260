"""Projects, workflows and their versions."""

from datetime import datetime
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.definition.diff import Op
from shoal.core.definition.model import WorkflowHead
from shoal.core.runs.records import StoredWorkflow
from shoal.core.runs.states import WorkflowState


class ProjectOut(Answer):
    """A name space of workflows."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"workflows"})

    name: str
    description: str
    workflows: int = Field(description="How many it holds.")
    created_at: datetime


class ProjectIn(RequestBody):
    """What can be changed of a project."""

    description: str = Field(default="", max_length=2000)


class _Workflow(WorkflowHead):
    model_config = ConfigDict(
        from_attributes=True, extra="ignore", json_schema_serialization_defaults_required=True
    )

    version: int = Field(description="Number of the newest version.")
    digest: str = Field(description="SHA-256 of the newest definition.")
    tasks: int = Field(description="How many tasks the newest version has.")
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = Field(description="Since when nothing starts; null: it is used.")


class LastRunOut(Answer):
    """A run as lists of workflows show it."""

    id: int
    version: int
    state: WorkflowState
    logical_time: datetime
    started_at: datetime | None
    finished_at: datetime | None


class WorkflowOut(_Workflow):
    """A workflow and its newest version; in lists with what it did last and does next."""

    next_fire_at: datetime | None = Field(
        default=None, description="In lists; null there: no schedule of it fires."
    )
    last_runs: list[LastRunOut] | None = Field(
        default=None,
        description="In lists: as many as `runs` says, the latest logical time first.",
    )

    @classmethod
    def of(cls, workflow: StoredWorkflow, **more: Any) -> Self:
        """Return a stored workflow; ``more``: the fields of lists."""
        return cls.model_validate({**vars(workflow), **workflow.texts, **more})


class WorkflowDetail(_Workflow):
    """A workflow with its newest definition."""

    definition: dict[str, Any] = Field(description="The definition without default values.")


class VersionOut(Answer):
    """One line of a workflow's history."""

    version: int
    digest: str
    created_at: datetime
    published_by: str | None = Field(description="Null: it was not noted yet.")


class VersionDetail(VersionOut):
    """One published version with its definition; it never changes."""

    project: str
    name: str
    source: str | None = Field(description="The YAML that it was published from, if it was.")
    definition: dict[str, Any] = Field(description="The definition without default values.")


class ChangeOut(Answer):
    """One value that differs between two versions."""

    op: Op
    path: str = Field(examples=["tasks[report].retries"])
    before: Any = None
    after: Any = None


class PublishOut(Answer):
    """What publishing did, or with `dry_run` would do."""

    project: str
    name: str
    version: int = Field(description="The newest version afterwards.")
    created: bool = Field(description="Whether that version is new; false: nothing changed.")
    dry_run: bool = Field(description="Whether nothing was stored in any case.")
    digest: str
    diff: list[ChangeOut] = Field(description="Changes against the version before.")
    warnings: list[str] = Field(
        default=[],
        description="What is allowed and probably a mistake, for example a workflow that runs "
        "itself as a sub-workflow, directly or through others.",
    )
