"""What a workflow *is*: one versioned model behind YAML files, the Python SDK and REST JSON.

Field names here are the field names everywhere. Durations are seconds (float) once parsed;
files may write "90s" or "10m". Types of tasks are plugins; see ``task_types``.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)

from shoal.core import cron, macros
from shoal.core.durations import parse_duration
from shoal.core.priority import Priority

# Names stand in paths of logs and znodes, so they are slugs.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]

# Parameters reach processes as environment variables; these would change the process itself.
RESERVED_PARAMETERS = frozenset(
    {"PATH", "HOME", "USER", "SHELL", "IFS", "ENV", "BASH_ENV", "PWD", "TMPDIR", "LANG"}
    | {"JAVA_HOME", "PYTHONPATH", "PYTHONHOME"}
)
RESERVED_PREFIXES = ("SHOAL_", "LD_", "BASH_FUNC")

# Refused before any graph work: enough for any real workflow, small enough to decide upon.
MAX_TASKS = 20_000


def _seconds(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a duration such as 30s, 10m, 1h30m or a number of seconds")
    return parse_duration(value)


Duration = Annotated[
    float, BeforeValidator(_seconds, json_schema_input_type=str | float), Field(ge=0)
]
Level = Annotated[
    Priority,
    BeforeValidator(Priority.read, json_schema_input_type=str),
    PlainSerializer(lambda level: level.name, return_type=str),
]


def _known_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{value!r} is no time zone of the tz database") from None
    return value


Zone = Annotated[str, AfterValidator(_known_zone)]


class FailureStrategy(StrEnum):
    """What the other tasks do once a task has finally failed."""

    CONTINUE = "continue"  # everything that does not depend on the failed task runs
    FINISH_RUNNING = "finish_running"  # nothing new starts; running tasks finish
    FAIL_FAST = "fail_fast"  # running tasks are killed
    IGNORE = "ignore"  # downstream tasks run as if it had succeeded


class RunWhen(StrEnum):
    """When a task starts, judged by its upstream tasks."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"  # whatever their results
    ONE_SUCCESS = "one_success"  # at once when the first one succeeds
    ANY_FAILED = "any_failed"  # at once when the first one fails
    ALWAYS = "always"  # as all_done, and even while the workflow is failing fast


class ParameterType(StrEnum):
    """How a parameter's value is checked at launch. Values travel as text."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"  # YYYY-MM-DD


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ParameterSpec(_Strict):
    """One parameter of a workflow. Without a default it must be given at every launch."""

    default: str | None = None
    type: ParameterType = ParameterType.STRING
    description: str = ""

    @field_validator("default", mode="before")
    @classmethod
    def _scalar_as_text(cls, value: Any) -> Any:
        return scalar_text(value)

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        if self.default is not None and "$" not in self.default:
            check_value(self.type, self.default)
        return self


class TaskSpec(_Strict):
    """One node of the DAG."""

    name: Name
    type: str
    params: dict[str, Any] = Field(default_factory=dict)
    depends_on: tuple[Name, ...] = ()
    run_when: RunWhen = RunWhen.ALL_SUCCESS
    description: str = ""
    enabled: bool = True
    priority: Level = Priority.MEDIUM
    worker_group: Name = "default"
    retries: int = Field(default=0, ge=0, le=100)
    retry_delay: Duration = 0.0
    timeout: Duration | None = Field(default=None, gt=0)

    @field_validator("depends_on", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class ScheduleSpec(_Strict):
    """One timetable of a workflow: it starts the newest published version at each fire time."""

    cron: str
    timezone: Zone | None = None  # None: the workflow's
    parameters: dict[ParameterName, str] = Field(default_factory=dict)
    enabled: bool = True

    @field_validator("parameters", mode="before")
    @classmethod
    def _scalars_as_text(cls, value: Any) -> Any:
        return {k: scalar_text(v) for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _cron_parses(self) -> Self:
        cron.parse(self.cron, self.timezone or "UTC")
        return self


class WorkflowSpec(_Strict):
    """A whole workflow definition as one version stores it."""

    project: Name = "default"
    name: Name
    description: str = ""
    parameters: dict[ParameterName, ParameterSpec] = Field(default_factory=dict)
    timezone: Zone = "UTC"  # of date expressions, and of schedules that name none
    priority: Level = Priority.MEDIUM
    on_failure: FailureStrategy = FailureStrategy.CONTINUE
    schedules: tuple[ScheduleSpec, ...] = ()
    tasks: tuple[TaskSpec, ...] = Field(min_length=1, max_length=MAX_TASKS)

    @field_validator("parameters", mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            k: v if isinstance(v, dict | ParameterSpec) else {"default": v}
            for k, v in value.items()
        }

    def canonical(self) -> dict[str, Any]:
        """Return the definition as plain JSON values without defaults, for storing and diffs."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def digest(self) -> str:
        """SHA-256 of the canonical form (hex): equal digests mean nothing changed."""
        text = json.dumps(self.canonical(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def scalar_text(value: Any) -> Any:
    """Return the text of a scalar as files write it: true, 3, 2013-01-15. Others pass through."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return value


def check_value(kind: ParameterType, text: str) -> None:
    """Raise ValueError if ``text`` is no value of type ``kind``."""
    try:
        match kind:
            case ParameterType.INTEGER:
                int(text)
            case ParameterType.NUMBER:
                float(text)
            case ParameterType.BOOLEAN:
                if text not in ("true", "false"):
                    raise ValueError
            case ParameterType.DATE:
                datetime.strptime(text, "%Y-%m-%d")
            case ParameterType.STRING:
                if "\0" in text:
                    raise ValueError
    except ValueError:
        raise ValueError(f"{text!r} is no {kind}") from None


def reserved_parameter(name: str) -> bool:
    """Say whether a parameter of this name would change the processes that receive it."""
    return name.upper() in RESERVED_PARAMETERS or name.upper().startswith(RESERVED_PREFIXES)


def launch_problems(spec: WorkflowSpec, given: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with startup values, by parameter: unknown, missing, ill-typed."""
    known = ", ".join(spec.parameters) or "none"
    problems = {
        name: f"the workflow has no such parameter; it has: {known}"
        for name in given
        if name not in spec.parameters
    }
    for name, parameter in spec.parameters.items():
        value = given.get(name, parameter.default)
        if value is None:
            problems[name] = "has no default, give a value"
        elif "$" in value:  # rendered when a task starts, so only the placeholders are checked
            mistakes = macros.check(value)
            if mistakes:
                problems[name] = f"{mistakes[0]} (write $$ for a plain $)"
        else:
            try:
                check_value(parameter.type, value)
            except ValueError as error:
                problems[name] = str(error)
    return problems


def launch_parameters(spec: WorkflowSpec, given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of one run: startup values over defaults.

    Raises ValueError listing everything that ``launch_problems`` finds.
    """
    problems = launch_problems(spec, given)
    if problems:
        raise ValueError("; ".join(f"{name}: {text}" for name, text in problems.items()))
    return {
        name: given.get(name, parameter.default or "")
        for name, parameter in spec.parameters.items()
    }
