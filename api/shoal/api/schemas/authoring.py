"""Drafts, plans, comparisons, and what becomes of workflows."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, StrictInt, StrictStr, model_validator

from shoal.api.schemas.common import Answer, RequestBody
from shoal.api.schemas.definitions import ChangeOut
from shoal.api.schemas.schedules import ScheduleOut
from shoal.api.web.problems import ProblemField
from shoal.core.checks.workflow import MAX_TASKS
from shoal.core.definition.fields import Name

LONGEST_TEXT = 1_000_000  # characters of a draft
_FARTHEST = 10_000_000  # pixels from the middle: 10,000 tasks in a row take 3 million


class TaskChangeOut(Answer):
    """A task that both versions have, and what differs; paths are within the task."""

    task: str
    changes: list[ChangeOut]


class EdgeOut(Answer):
    """`target` depends on `source`."""

    source: str
    target: str


class ComparisonOut(Answer):
    """What differs between two versions of a definition."""

    fields: list[ChangeOut] = Field(description="Of all fields but those below.")
    parameters: list[ChangeOut]
    schedules: list[ChangeOut]
    tasks_added: list[str]
    tasks_removed: list[str]
    tasks_changed: list[TaskChangeOut]
    edges_added: list[EdgeOut]
    edges_removed: list[EdgeOut]
    text: str | None = Field(
        description="A unified diff of the YAML; null: the texts are too long."
    )


class DiffOut(ComparisonOut):
    """What differs between two published versions."""

    project: str
    name: str
    base: int = Field(description="The version before; 0: nothing.")
    version: int


class DefinitionIn(RequestBody):
    """A definition that is not published: its text, or its value."""

    text: StrictStr | None = Field(
        default=None, max_length=LONGEST_TEXT, description="One document of YAML."
    )
    definition: dict[str, Any] | None = Field(
        default=None, description="Instead of the text; `project` and `name` may be left out."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.definition is None):
            raise ValueError("give either text or definition")
        return self


class ValidationOut(Answer):
    """Whether a definition could be published."""

    valid: bool
    problems: list[ProblemField] = Field(description="All of them, or the first hundred.")


class DraftOut(Answer):
    """A draft without its text."""

    project: str
    name: str
    editor: str = Field(description="Whose it is: each person has one of each workflow.")
    base_version: int = Field(description="The version that it began with; 0: there was none.")
    newest_version: int = Field(
        description="The newest version now; 0: none. It differs from `base_version` if a "
        "version was published in the meantime."
    )
    revision: int = Field(description="Grows with each change.")
    created_at: datetime
    updated_at: datetime


class DraftDetail(DraftOut):
    """A draft with its text, as it was typed."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"newest_version"})

    text: str


class DraftIn(RequestBody):
    """What a draft becomes."""

    text: StrictStr = Field(
        max_length=LONGEST_TEXT, description="The text as it is, valid YAML or not."
    )
    base_version: StrictInt | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="The version that it builds upon, 0 for none. Left out: as it is, or of a new "
        "draft the newest one. Give it after merging a newly published version.",
    )


class NamedOut(Answer):
    """A task names a workflow: to run it, or to wait for its runs."""

    project: str
    workflow: str
    kind: Literal["SUB_WORKFLOW", "MAP", "DEPENDENT"]
    task: str = Field(description="The task that names, of whichever workflow does.")


class DependenciesOut(Answer):
    """The workflows around one, by the newest definitions."""

    project: str
    name: str
    upstream: list[NamedOut] = Field(description="Those that it names.")
    downstream: list[NamedOut] = Field(description="Those that name it.")
    hidden: int = Field(description="How many more name it, in projects that you do not see.")


class SchedulePlanOut(BaseModel):
    """What becomes of one schedule; both have their next fire times."""

    change: Literal["added", "removed", "changed", "kept"]
    before: ScheduleOut | None
    after: ScheduleOut | None = Field(description="The `id` of one that is added means nothing.")


class HangingOut(Answer):
    """What hangs on a workflow."""

    open_runs: int = Field(description="Instances that have not ended.")
    open_run_ids: list[int] = Field(description="The newest of them, at most 20.")
    schedules: int
    backfills: int = Field(description="Those that have not ended.")
    drafts: int
    downstream: list[NamedOut] = Field(description="Tasks of other workflows that name it.")
    hidden: int = Field(description="How many more name it, in projects that you do not see.")


class WorkflowPlanOut(Answer):
    """What publishing would do, now. Nothing was stored."""

    project: str
    name: str
    base: int = Field(description="The newest version now; 0: there is none.")
    version: int = Field(description="The newest version afterwards.")
    created: bool = Field(description="Whether that one would be new; false: nothing differs.")
    digest: str
    comparison: ComparisonOut
    schedules: list[SchedulePlanOut]
    hanging: HangingOut = Field(description="Open runs go on with the version they began with.")


class RenameIn(RequestBody):
    """What a workflow is to be called."""

    name: Name
    despite: set[Literal["references"]] = Field(
        default=set(), description="Rename it although other workflows name it, which then fail."
    )


class RenameOut(Answer):
    """A workflow under its new name, or what renaming would leave behind."""

    project: str
    before: str
    name: str
    version: int = Field(description="The version that has the new name.")
    dry_run: bool
    downstream: list[NamedOut] = Field(description="Tasks that go on naming it as it was called.")
    hidden: int


class CopyIn(RequestBody):
    """What is copied; its project has to be readable for the caller."""

    project: Name
    workflow: Name
    version: StrictInt | None = Field(default=None, ge=1, le=2**31 - 1, description="Null: newest.")

    def reads(self) -> Iterator[str]:
        """Yield the project that is read."""
        yield self.project


class ImportIn(RequestBody):
    """What was exported, or written like that."""

    text: StrictStr = Field(max_length=4 * LONGEST_TEXT, description="Documents of YAML.")


class ImportItem(Answer):
    """What became of one document."""

    kind: Literal["workflow", "calendar", "concurrency-group"]
    name: str
    line: int = Field(description="Where it begins.")
    result: Literal["created", "changed", "unchanged", "refused"]
    version: int | None = Field(description="Of a workflow, afterwards.")
    problems: list[ProblemField] = Field(description="Why it is refused.")


class ImportOut(Answer):
    """What an import did, or with `dry_run` would do: everything or nothing."""

    project: str
    dry_run: bool
    stored: bool
    items: list[ImportItem]


class ExportOut(Answer):
    """Workflows of a project with what they name, by names. No secrets, no runs."""

    project: str
    text: str = Field(description="Documents of YAML, as `import` takes them.")
    environments: list[str] = Field(
        description="What the workflows name that belongs to the cluster, and has to be there."
    )


class PlaceIn(RequestBody):
    """The upper left corner of a task."""

    x: float = Field(ge=-_FARTHEST, le=_FARTHEST, allow_inf_nan=False, strict=True)
    y: float = Field(ge=-_FARTHEST, le=_FARTHEST, allow_inf_nan=False, strict=True)


class LayoutIn(RequestBody):
    """Where tasks are on the canvas. It replaces what was there."""

    places: dict[Name, PlaceIn] = Field(
        max_length=MAX_TASKS,
        description="Of tasks by name, in pixels. Others are arranged.",
        json_schema_extra={"additionalProperties": False},
    )
    groups: dict[Name, list[Name]] = Field(
        default_factory=dict,
        max_length=MAX_TASKS,
        description="Tasks that are shown together. A task is in one group at most.",
        json_schema_extra={"additionalProperties": False},
    )
    folded: list[Name] = Field(
        default_factory=list, max_length=MAX_TASKS, description="Groups that are shown as one."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        home: dict[str, str] = {}
        for group, tasks in self.groups.items():
            for task in tasks:
                if home.setdefault(task, group) != group or tasks.count(task) > 1:
                    raise ValueError(f"task {task!r} is in a group already: {home[task]!r}")
        if len(home) > MAX_TASKS:
            raise ValueError(f"groups have more than {MAX_TASKS} tasks")
        for name in self.folded:
            if name not in self.groups:
                raise ValueError(f"folded: there is no group {name!r}")
        return self


class PlaceOut(Answer):
    """The upper left corner of a task."""

    x: float
    y: float


class LayoutOut(Answer):
    """Positions of tasks on the canvas; without positions the layout is automatic."""

    places: dict[str, PlaceOut] = Field(
        description="By name. Some may be of tasks that the newest version has not."
    )
    groups: dict[str, list[str]]
    folded: list[str]
    updated_at: datetime | None = Field(description="Null: nothing was arranged.")
    updated_by: str | None
