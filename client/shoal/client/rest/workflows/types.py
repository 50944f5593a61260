"""The JSON of drafts, plans, comparisons and exchange, as types."""

from typing import Literal, TypedDict

from shoal.client.rest.types import ChangeJson, ScheduleJson


class DraftJson(TypedDict):
    project: str
    name: str
    editor: str
    base_version: int
    newest_version: int
    revision: int
    created_at: str
    updated_at: str


class DraftDetailJson(DraftJson):
    text: str
    etag: str  # of the header: what a change of it names


class ProblemJson(TypedDict):
    field: str
    message: str
    line: int | None


class ValidationJson(TypedDict):
    valid: bool
    problems: list[ProblemJson]


class TaskChangeJson(TypedDict):
    task: str
    changes: list[ChangeJson]


class EdgeJson(TypedDict):
    source: str
    target: str


class ComparisonJson(TypedDict):
    fields: list[ChangeJson]
    parameters: list[ChangeJson]
    schedules: list[ChangeJson]
    tasks_added: list[str]
    tasks_removed: list[str]
    tasks_changed: list[TaskChangeJson]
    edges_added: list[EdgeJson]
    edges_removed: list[EdgeJson]
    text: str | None


class DiffJson(ComparisonJson):
    project: str
    name: str
    base: int
    version: int


class NamedJson(TypedDict):
    project: str
    workflow: str
    kind: Literal["SUB_WORKFLOW", "MAP", "DEPENDENT"]
    task: str


class DependenciesJson(TypedDict):
    project: str
    name: str
    upstream: list[NamedJson]
    downstream: list[NamedJson]
    hidden: int


class HangingJson(TypedDict):
    open_runs: int
    open_run_ids: list[int]
    schedules: int
    backfills: int
    drafts: int
    downstream: list[NamedJson]
    hidden: int


class SchedulePlanJson(TypedDict):
    change: Literal["added", "removed", "changed", "kept"]
    before: ScheduleJson | None
    after: ScheduleJson | None


class PlanJson(TypedDict):
    project: str
    name: str
    base: int
    version: int
    created: bool
    digest: str
    comparison: ComparisonJson
    schedules: list[SchedulePlanJson]
    hanging: HangingJson


class RenameJson(TypedDict):
    project: str
    before: str
    name: str
    version: int
    dry_run: bool
    downstream: list[NamedJson]
    hidden: int


class ImportItemJson(TypedDict):
    kind: Literal["workflow", "calendar", "concurrency-group"]
    name: str
    line: int
    result: Literal["created", "changed", "unchanged", "refused"]
    version: int | None
    problems: list[ProblemJson]


class ImportJson(TypedDict):
    project: str
    dry_run: bool
    stored: bool
    items: list[ImportItemJson]


class ExportJson(TypedDict):
    project: str
    text: str
    environments: list[str]
