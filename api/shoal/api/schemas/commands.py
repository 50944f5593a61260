"""Commands."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt

from shoal.api.schemas.common import Answer, RequestBody
from shoal.api.web.paging import MAX_ID
from shoal.core.access.authorization import Thing
from shoal.core.definition.fields import ONE_LINE, Priority, PriorityName, scalar_text
from shoal.core.definition.labels import Labels
from shoal.core.definition.selection import SelectionMode
from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.timing.instant import LogicalTime

# The others are messages between masters, or have routes of their own.
RequestType = Literal[
    CommandType.START,
    CommandType.RERUN,
    CommandType.PAUSE,
    CommandType.RESUME,
    CommandType.STOP,
    CommandType.RECOVER,
    CommandType.RERUN_TASKS,
    CommandType.KILL_TASK,
    CommandType.FORCE_SUCCESS,
]
# Of one request, for the row that it becomes:
MAX_NAMED_TASKS = 1_000
LONGEST_KEY = 200  # characters of an idempotency key
LONGEST_REASON = 1_000  # characters
MOST_PARAMETERS = 10_000


def _scalars_as_text(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if len(value) > MOST_PARAMETERS:
        raise ValueError(f"{len(value)} parameters, at most {MOST_PARAMETERS} are allowed")
    return {k: scalar_text(v) for k, v in value.items()}


def _priority_name(value: Any) -> Any:
    return None if value is None else Priority.read(value).name


#: Values of a run's parameters; numbers and booleans are taken as text.
ParameterValues = Annotated[dict[str, str], BeforeValidator(_scalars_as_text)]
#: A priority by name or number; None is that of the workflow.
GivenPriority = Annotated[PriorityName | None, BeforeValidator(_priority_name)]

_INSTANCE = frozenset({"instance_id"})
# Which fields go with which type; the key goes with all.
_FIELDS: Mapping[CommandType, frozenset[str]] = {
    CommandType.START: frozenset(
        {"project", "workflow", "version", "parameters", "logical_time", "priority"}
        | {"tasks", "mode", "labels"}
    ),
    CommandType.RERUN: _INSTANCE,
    CommandType.PAUSE: _INSTANCE,
    CommandType.RESUME: _INSTANCE,
    CommandType.STOP: _INSTANCE,
    CommandType.RECOVER: _INSTANCE,
    CommandType.RERUN_TASKS: _INSTANCE | {"tasks", "mode"},
    CommandType.KILL_TASK: _INSTANCE | {"task", "task_instance_id"},
    CommandType.FORCE_SUCCESS: _INSTANCE | {"task", "task_instance_id", "reason"},
}
_OF_EVERY_TYPE = frozenset({"type", "idempotency_key"})


class CommandIn(RequestBody):
    """A request to the masters. START names a workflow, all others an instance or a task."""

    type: RequestType
    project: str | None = Field(default=None, description="START: of the workflow; or `default`.")
    workflow: str | None = Field(default=None, description="START: the workflow to run.")
    version: StrictInt | None = Field(
        default=None, ge=1, le=2**31 - 1, description="START: null is the newest one."
    )
    instance_id: StrictInt | None = Field(
        default=None, ge=1, le=MAX_ID, description="All but START: the instance it is about."
    )
    tasks: list[str] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_NAMED_TASKS,
        description="START, RERUN_TASKS: the tasks to run; for START null is all.",
    )
    mode: SelectionMode | None = Field(
        default=None,
        description="With `tasks`: only them (as null), with all before, or with all behind them.",
    )
    task: str | None = Field(
        default=None, description="KILL_TASK, FORCE_SUCCESS: the task of the instance."
    )
    task_instance_id: StrictInt | None = Field(
        default=None,
        ge=1,
        le=MAX_ID,
        description="KILL_TASK, FORCE_SUCCESS: instead of `instance_id` and `task`; the task's "
        "newest attempt.",
    )
    reason: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_REASON,
        pattern=ONE_LINE,
        description="FORCE_SUCCESS: why, for those who look at it later.",
    )
    parameters: ParameterValues = Field(
        default={}, description="START: values for the workflow's parameters."
    )
    logical_time: LogicalTime | None = Field(
        default=None,
        description="START: the instant the run is for; null is now. From 0001-01-02T00:00:00Z to "
        "9999-12-30T23:59:59Z.",
    )
    priority: GivenPriority = Field(default=None, description="START: null is the workflow's own.")
    labels: Labels = Field(
        default={}, description="START: parameters of the run; they override the workflow's."
    )
    idempotency_key: str | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_KEY,
        pattern=ONE_LINE,
        description="The same key never starts anything twice; see the header as well.",
    )

    def shape_problems(self) -> Iterator[tuple[str, str]]:
        """Yield each field that does not go with the type, and what is wrong with it."""
        given = {name for name, value in self if value not in (None, {})} - _OF_EVERY_TYPE
        for name in type(self).model_fields:
            if name in given - _FIELDS[self.type]:
                yield name, f"does not go with {self.type}"
        for name in _required(self.type, given):
            if name not in given:
                yield name, f"is required for {self.type}"
        if "task_instance_id" in given:
            for name in ("instance_id", "task"):
                if name in given & _FIELDS[self.type]:
                    yield name, "does not go with task_instance_id, which says all"
        if "mode" in given and "tasks" not in given and self.type is CommandType.START:
            yield "mode", "goes with tasks only"

    def things(self) -> Iterator[tuple[Thing, int | str]]:
        """Yield what the command is about; nothing if its fields do not fit each other."""
        if any(self.shape_problems()):
            return
        if self.type is CommandType.START:
            yield Thing.PROJECT, self.project or "default"
        if self.instance_id is not None:
            yield Thing.INSTANCE, self.instance_id
        if self.task_instance_id is not None:
            yield Thing.TASK_INSTANCE, self.task_instance_id


def schemas_by_type(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each type of command, by its name, from that of ``CommandIn``."""
    found: dict[str, dict[str, Any]] = {}
    for kind, fields in _FIELDS.items():
        always = {*_required(kind, set()), *(fields & {"task_instance_id"})}
        properties = {
            name: {"type": "string", "const": kind.value}
            if name == "type"
            else _not_null(inner)
            if name in always
            else inner
            for name, inner in schema["properties"].items()
            if name in fields | _OF_EVERY_TYPE
        }
        one: dict[str, Any] = {
            "title": name_of_schema(kind),
            "description": f"A request to {kind.value.lower().replace('_', ' ')}.",
            "type": "object",
            "additionalProperties": False,
            "properties": properties,
            "required": ["type", *_required(kind, {"task_instance_id"})],
        }
        if "task_instance_id" in fields:
            by_name = _required(kind, set())
            one["oneOf"] = [
                {"required": ["task_instance_id"], "not": _any_of(by_name)},
                {"required": [*by_name], "not": _any_of(["task_instance_id"])},
            ]
        found[kind.value] = one
    return found


def _not_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field that has to be given."""
    [given] = [one for one in schema["anyOf"] if one.get("type") != "null"]
    said = {name: one for name, one in schema.items() if name not in ("anyOf", "default")}
    return {**said, **given}


def _any_of(names: Sequence[str]) -> dict[str, Any]:
    return {"anyOf": [{"required": [name]} for name in names]}


def name_of_schema(kind: CommandType) -> str:
    """Return what the schema of a type of command is called: RERUN_TASKS is RerunTasksCommand."""
    return "".join(word.capitalize() for word in kind.value.split("_")) + "Command"


def _required(kind: CommandType, given: set[str]) -> Sequence[str]:
    match kind:
        case CommandType.START:
            return ("workflow",)
        case CommandType.RERUN_TASKS:
            return ("instance_id", "tasks")
        case CommandType.KILL_TASK | CommandType.FORCE_SUCCESS:
            return () if "task_instance_id" in given else ("instance_id", "task")
        case _:
            return ("instance_id",)


class CommandOut(Answer):
    """A stored command and what became of it."""

    id: int
    type: CommandType
    state: CommandState = Field(description="PENDING until a master has looked at it.")
    reason: str | None = Field(description="Why it was refused.")
    instance_id: int | None = Field(description="The instance it is about; null for START.")
    result_instance_id: int | None = Field(
        description="Once DONE: the new instance of START and RERUN, else `instance_id`."
    )
    version: int | None
    parameters: dict[str, str]
    logical_time: datetime | None
    priority: PriorityName | None
    tasks: list[str] | None = Field(description="The chosen tasks; null: all.")
    mode: SelectionMode | None = Field(description="What goes with `tasks`.")
    task: str | None = Field(description="Of KILL_TASK and FORCE_SUCCESS.")
    labels: dict[str, str] = Field(description="That START has named.")
    detail: dict[str, Any] = Field(description="What only this type has, such as a reason.")
    idempotency_key: str
    schedule_id: int | None
    backfill_id: int | None = Field(
        description="The backfill it is about, or belongs to; of BACKFILL once DONE: the new one."
    )
    requested_by: str
    created_at: datetime
    handled_at: datetime | None
