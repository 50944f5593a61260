"""The options of workflows and tasks, as Python authors write them."""

import datetime as dt
import reprlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from shoal.client.errors import AuthoringError
from shoal.client.sdk.argument_types import check, hints_of_options

if TYPE_CHECKING:
    from shoal.client.sdk.workflow import Task, Workflow

Scalar: TypeAlias = str | int | float | bool | dt.date
Duration: TypeAlias = str | int | float | dt.timedelta  # "90s", seconds, or a timedelta
PriorityName: TypeAlias = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
RunWhenName: TypeAlias = Literal["all_success", "all_done", "one_success", "any_failed", "always"]
OnFailureName: TypeAlias = Literal["continue", "finish_running", "fail_fast", "ignore"]
OverlapName: TypeAlias = Literal[
    "allow", "queue", "queue_by_priority", "queue_latest", "skip_new", "replace"
]


class TaskOptions(TypedDict, total=False):
    """Options that every type of task has."""

    workflow: "Workflow | None"  # None: the one of the surrounding ``with``
    depends_on: "Task | str | Sequence[Task | str]"
    description: str
    enabled: bool
    parameters: Mapping[str, Scalar]
    priority: PriorityName
    worker_group: str
    environment: str
    concurrency_group: str
    run_when: RunWhenName
    delay: Duration
    retries: int
    retry_delay: Duration
    retry_backoff: float
    retry_max_delay: Duration
    retry_jitter: float
    timeout: Duration
    timeout_action: Literal["fail", "warn", "both"]
    outputs_from_log: bool
    resources: Sequence[str]
    publish: Mapping[str, str]


class WorkflowOptions(TypedDict, total=False):
    """Options of a workflow; what is left out is at its default."""

    description: str
    owner: str
    timezone: str
    priority: PriorityName
    on_failure: OnFailureName
    timeout: Duration
    timeout_action: Literal["warn", "stop", "both"]
    deadline: Duration
    overlap: OverlapName
    max_active: int
    max_queued: int
    labels: Mapping[str, str]
    backfill_base: Literal["logical_time", "next_day"]
    environment: str


# Those that a definition has under the same name.
TASK_FIELDS = frozenset(TaskOptions.__annotations__) - {"workflow", "depends_on"}


def options_of(values: Mapping[str, Any]) -> TaskOptions:
    """Return ``values`` as options of a task. Raises AuthoringError for unknown names and types."""
    known = sorted(TaskOptions.__annotations__)
    if unknown := set(values) - set(known):
        raise AuthoringError(
            f"unknown option {', '.join(sorted(unknown))}; a task has {', '.join(known)}"
        )
    hints = hints_of_options()
    for name, value in values.items():
        if value is not None:
            check("task", name, value, hints[name])
    return cast(TaskOptions, dict(values))


def plain(value: Any) -> Any:
    """Return the value as YAML and JSON have it. Raises AuthoringError for what they have not."""
    try:
        return _plain(value)
    except RecursionError:
        raise AuthoringError("a value holds itself, or is far too deep") from None


def _plain(value: Any) -> Any:
    match value:
        case dt.timedelta():
            return value.total_seconds()
        case dt.date():
            return value.isoformat()
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | str() | bool() | int() | float():
            return value
        case _ if hasattr(value, "__fspath__"):
            return value.__fspath__()
    shown = " ".join(reprlib.repr(value).split())
    raise AuthoringError(
        f"{shown} is not text, a number, a truth value, a date, a list or a mapping"
    )
