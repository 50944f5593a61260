"""What the API answers about many runs, as typed dictionaries."""

from typing import Any, TypedDict

from shoal.client.rest.operations.generated import types as made

PastInstanceJson = made.PastInstanceOut
PastDetailJson = made.PastInstanceDetail
PastAttemptJson = made.PastAttemptOut


class CountJson(TypedDict):
    """A number; with ``is_more`` there are at least so many."""

    count: int
    is_more: bool


class CountsJson(TypedDict):
    """How many there are, in all and by state."""

    total: CountJson
    states: dict[str, CountJson]


class ProblemJson(TypedDict):
    """Why nothing is asked of one of many."""

    type: str
    status: int
    detail: str


class TouchedJson(TypedDict):
    """A task that a request would change."""

    task: str
    state: str
    becomes: str
    ends_early: bool


class PreviewJson(TypedDict):
    """What a request would do to one run."""

    refusal: str | None
    state: str | None
    tasks: list[TouchedJson] | None
    more_tasks: int


class BulkItemJson(TypedDict):
    """What became of one of many."""

    id: int
    command_id: int | None
    problem: ProblemJson | None
    preview: PreviewJson | None


class BulkJson(TypedDict):
    """One result for each."""

    digest: str
    is_more: bool
    items: list[BulkItemJson]


class HitJson(TypedDict):
    """A line of a log."""

    offset: int
    line: str
    before: list[str]
    after: list[str]


class LogHitsJson(TypedDict):
    """What was found in one log."""

    hits: list[HitJson]
    next_offset: int | None
    size: int
    finished: bool


class TaskHitsJson(TypedDict):
    """What was found in the log of one of an instance's attempts."""

    task_instance_id: int
    task: str
    attempt: int
    hits: list[HitJson]
    problem: str | None


class RenderedJson(TypedDict):
    """What a task gets."""

    params: dict[str, Any]
    parameters: dict[str, str]
    problem: str | None


class PlannedTaskJson(TypedDict):
    """A task of a run that there is not."""

    task: str
    type: str
    depends_on: list[str]
    worker_group: str
    runs: bool
    rendered: RenderedJson | None


class StartPreviewJson(TypedDict):
    """The run that a start would make."""

    project: str
    workflow: str
    version: int
    logical_time: str
    timezone: str
    priority: str
    parameters: dict[str, str]
    labels: dict[str, str]
    tasks: list[PlannedTaskJson]


class RunSideJson(TypedDict):
    """One of two runs."""

    instance_id: int
    version: int
    state: str
    logical_time: str
    started_at: str | None
    seconds: float | None


class TaskSideJson(TypedDict):
    """A task in one of two runs."""

    attempt: int
    state: str
    seconds: float | None
    worker: str | None


class ValueChangeJson(TypedDict):
    """A value that differs."""

    name: str
    one: str | None
    other: str | None


class TaskChangeJson(TypedDict):
    """A task in two runs."""

    task: str
    one: TaskSideJson | None
    other: TaskSideJson | None
    differs: bool
    slower_s: float | None


class ComparisonJson(TypedDict):
    """How two runs differ."""

    one: RunSideJson
    other: RunSideJson
    parameters: list[ValueChangeJson]
    labels: list[ValueChangeJson]
    tasks: list[TaskChangeJson]


class BarJson(TypedDict):
    """One attempt in time."""

    task_instance_id: int
    task: str
    attempt: int
    state: str
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    is_critical: bool


class TimelineJson(TypedDict):
    """When the attempts of an instance worked."""

    started_at: str | None
    finished_at: str | None
    critical_path: list[str]
    critical_s: float
    bars: list[BarJson]
