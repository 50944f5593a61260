"""Author workflows in Python.

::

    with Workflow("daily", parameters={"date": Parameter(type="date")}) as daily:
        fetch = Shell("fetch", script="./fetch.sh")
        parts = [Shell(f"part-{n}", script="./part.sh") for n in range(3)]
        fetch >> parts >> Shell("join", script="./join.sh", retries=2)

A workflow made here, in YAML or in JSON is the same model; ``to_yaml`` shows it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import (
    Any,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from shoal.client.errors import AuthoringError
from shoal.client.sdk.arguments import Duration, Scalar, check, check_fields, hints_of, plain, typed
from shoal.client.sdk.author_files import call_site
from shoal.client.sdk.python_source import script_of, standalone_source
from shoal.client.sdk.schedules import Schedule
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.checks.workflow import Path as ValuePath
from shoal.core.definition.fields import scalar_text
from shoal.core.definition.model import WorkflowSpec
from shoal.runtime.documents.source import DocumentSource, SourcePosition
from shoal.runtime.plugins import check_definition

P = ParamSpec("P")
R = TypeVar("R")
PriorityName: TypeAlias = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]
RunWhenName: TypeAlias = Literal["all_success", "all_done", "one_success", "any_failed", "always"]
OnFailureName: TypeAlias = Literal["continue", "finish_running", "fail_fast", "ignore"]
OverlapName: TypeAlias = Literal[
    "allow", "queue", "queue_by_priority", "queue_latest", "skip_new", "replace"
]
ParameterTypeName: TypeAlias = Literal["string", "integer", "number", "boolean", "date"]


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


@dataclass(frozen=True)
class Parameter:
    """A parameter of a workflow. Without a default it must be given at every launch."""

    default: Scalar | None = None
    type: ParameterTypeName = "string"
    description: str = ""

    def __post_init__(self) -> None:
        check_fields(self)


_USUAL = {"timezone": "UTC", "priority": "MEDIUM", "on_failure": "continue"}
_current: ContextVar["Workflow | None"] = ContextVar("shoal_workflow", default=None)
Tasks = TypeVar("Tasks", bound="Task | Sequence[Task]")


class Workflow:
    """A workflow under construction. Raises AuthoringError for what makes no sense at once;
    ``spec`` checks all the rest."""

    @typed
    def __init__(
        self,
        name: str,
        *,
        project: str = "default",
        parameters: Mapping[str, Scalar | Parameter | None] | None = None,
        schedules: Sequence[Schedule | str] = (),
        **options: Unpack[WorkflowOptions],
    ) -> None:
        self.name, self.project = name, project
        if unknown := set(options) - set(WorkflowOptions.__annotations__):
            known = ", ".join(sorted(WorkflowOptions.__annotations__))
            raise AuthoringError(f"unknown option {min(unknown)}; a workflow has {known}")
        self.options = {key: plain(value) for key, value in options.items()}
        self.parameters = {
            key: value if isinstance(value, Parameter) else Parameter(value)
            for key, value in (parameters or {}).items()
        }
        self.schedules = [Schedule(s) if isinstance(s, str) else s for s in schedules]
        self.tasks: dict[str, Task] = {}
        self.position = call_site()
        self._entered: list[Token[Workflow | None]] = []

    def __repr__(self) -> str:
        return f"<Workflow {self.project}/{self.name}, {len(self.tasks)} tasks>"

    def __enter__(self) -> Self:
        self._entered.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._entered.pop())

    @overload
    def task(self, function: Callable[P, R], /) -> "PythonTask[P, R]": ...

    @overload
    def task(
        self, /, *, name: str | None = None, **options: Unpack[TaskOptions]
    ) -> Callable[[Callable[P, R]], "PythonTask[P, R]"]: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Any:
        """Decorate a function that becomes a task of this workflow when it is called."""
        decorate = python_task(name=name, **options_of({**options, "workflow": self}))
        return decorate if function is None else decorate(function)

    def add(self, task: "Task") -> None:
        """Take a new task. Raises AuthoringError if there is one of this name."""
        if twin := self.tasks.get(task.name):
            raise AuthoringError(
                f"workflow {self.name!r} has a task {task.name!r} already, "
                f"made at {twin.position}; give this one another name"
            )
        self.tasks[task.name] = task

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as plain values, without what is left at its default."""
        values: dict[str, Any] = {"project": self.project, "name": self.name}
        description = self.options.get("description")
        if description:
            values["description"] = description
        if self.parameters:
            values["parameters"] = {k: _parameter(p) for k, p in self.parameters.items()}
        usual = {"description": description, **_USUAL}
        values |= {k: v for k, v in self.options.items() if v != usual.get(k)}
        if self.schedules:
            values["schedules"] = [schedule.to_dict() for schedule in self.schedules]
        return {**values, "tasks": [task.to_dict() for task in self.tasks.values()]}

    def to_yaml(self) -> str:
        """Return the definition as a YAML file."""
        from shoal.runtime.documents.yaml_text import definition_yaml

        return definition_yaml(self.to_dict())

    def spec(self) -> WorkflowSpec:
        """Return the checked definition. Raises InvalidDefinition with every problem."""
        try:
            return check_definition(self.to_dict())
        except InvalidDefinition as error:
            source = self.source()
            located = [source.locate(problem) for problem in error.problems]
            raise InvalidDefinition(located) from None

    def source(self, shown_as: Mapping[str, str] | None = None) -> DocumentSource:
        """Return the definition with the lines of the calls that made it.

        ``shown_as`` gives files another name in messages.
        """
        positions: dict[ValuePath, SourcePosition] = {(): self.position}
        for index, task in enumerate(self.tasks.values()):
            positions["tasks", index] = task.position
            for edge, position in enumerate(task.upstream.values()):
                positions["tasks", index, "depends_on", edge] = position
                positions["tasks", index, "depends_on"] = position  # the last one closes a cycle
        names = shown_as or {}
        shown = {
            path: SourcePosition(names.get(position.file, position.file), position.line)
            for path, position in positions.items()
        }
        return DocumentSource(self.to_dict(), shown)


class Task:
    """One task; ``params`` are those of its type.

    ``a >> b`` makes ``b`` depend on ``a`` and returns ``b``; either side may be a list.
    """

    @typed
    def __init__(
        self,
        name: str,
        *,
        type: str,  # noqa: A002  the word that files and the API use
        params: Mapping[str, Any] | None = None,
        workflow: Workflow | None = None,
        depends_on: "Task | str | Sequence[Task | str]" = (),
        **options_and_params: Any,
    ) -> None:
        owner = workflow or _current.get()
        if owner is None:
            raise AuthoringError(
                f"task {name!r} belongs to no workflow; make it inside `with Workflow(…):`, "
                "or pass workflow=…"
            )
        self.name, self.type, self.workflow = name, type, owner
        self.position = call_site()
        # Names of the tasks it depends on, in order, and where each edge was made.
        self.upstream: dict[str, SourcePosition] = {}
        known = hints_of(TaskOptions)
        for key, value in options_and_params.items():
            if key in known and value is not None:
                check(f"task {name!r}", key, value, known[key])
        given = {k: plain(v) for k, v in options_and_params.items()}
        self.options = {k: v for k, v in given.items() if k in TASK_FIELDS}
        more = {k: v for k, v in given.items() if k not in TASK_FIELDS}
        self.params: dict[str, Any] = {**plain(params or {}), **more}
        if isinstance(depends_on, Task | str):
            self.after(depends_on)
        else:
            for edge in depends_on:
                self.after(edge)
        owner.add(self)

    def __repr__(self) -> str:
        return f"<{self.type} task {self.workflow.name}.{self.name}>"

    @typed
    def after(self, upstream: "Task | str") -> None:
        """Start this task when ``upstream`` has ended. A name may be that of a later task."""
        name = upstream if isinstance(upstream, str) else upstream.name
        if isinstance(upstream, Task) and upstream.workflow is not self.workflow:
            raise AuthoringError(
                f"task {self.name!r} of workflow {self.workflow.name!r} cannot depend on "
                f"{name!r}, which belongs to workflow {upstream.workflow.name!r}"
            )
        if name == self.name:
            raise AuthoringError(f"task {name!r} cannot depend on itself")
        self.upstream.setdefault(name, call_site())

    def __rshift__(self, downstream: Tasks) -> Tasks:
        for task in _as_tasks(downstream):
            task.after(self)
        return downstream

    def __lshift__(self, upstream: Tasks) -> Tasks:
        for task in _as_tasks(upstream):
            self.after(task)
        return upstream

    def __rrshift__(self, upstream: "Sequence[Task]") -> Self:  # [a, b] >> self
        self.__lshift__(upstream)
        return self

    def __rlshift__(self, downstream: "Sequence[Task]") -> Self:  # [a, b] << self
        self.__rshift__(downstream)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the task as plain values."""
        values: dict[str, Any] = {"name": self.name, "type": self.type}
        if "description" in self.options:
            values["description"] = self.options["description"]
        values |= {key: plain(value) for key, value in self.options.items()}
        if self.upstream:
            values["depends_on"] = list(self.upstream)
        if self.params:
            values["params"] = {key: plain(value) for key, value in self.params.items()}
        return values


@dataclass(frozen=True)
class PythonTask(Generic[P, R]):
    """A decorated function. Calling it makes its task and returns it.

    Keyword arguments fix values; all other arguments are parameters of the task or its workflow.
    ``function`` is the function itself, for tests.
    """

    function: Callable[P, R]
    name: str
    source: str
    options: TaskOptions

    def __call__(self, **fixed: Any) -> Task:
        """Make the task in its workflow, or in the one of the surrounding ``with``."""
        workflow = self.options.get("workflow") or current_workflow()
        if workflow is None:
            raise AuthoringError(
                f"{self.name}() belongs to no workflow; call it inside `with Workflow(…):`"
            )
        script = script_of(
            self.function,
            self.source,
            fixed,
            own=self.options.get("parameters") or (),
            workflow=workflow.name,
            declared={name: one.type for name, one in workflow.parameters.items()},
        )
        options: TaskOptions = {**self.options, "workflow": workflow}
        return Task(self.name, type="PYTHON", params={"script": script}, **options)

    def named(self, name: str) -> "PythonTask[P, R]":
        """Return the same function for a task of another name."""
        check(f"{self.name}.named", "name", name, str)
        return replace(self, name=name)


@overload
def python_task(function: Callable[P, R], /) -> PythonTask[P, R]: ...


@overload
def python_task(
    *, name: str | None = None, **options: Unpack[TaskOptions]
) -> Callable[[Callable[P, R]], PythonTask[P, R]]: ...


def python_task(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any
) -> Any:
    """Turn a function into a task of a workflow. Raises AuthoringError if it cannot stand alone."""
    checked = options_of(options)
    check("python_task", "name", name, str | None)

    def decorate(function: Callable[P, R]) -> PythonTask[P, R]:
        source = standalone_source(function)
        return PythonTask(function, name or function.__name__, source, checked)

    return decorate if function is None else decorate(function)


def options_of(values: Mapping[str, Any]) -> TaskOptions:
    """Return ``values`` as options of a task. Raises AuthoringError for unknown names and types."""
    known = sorted(TaskOptions.__annotations__)
    if unknown := set(values) - set(known):
        raise AuthoringError(
            f"unknown option {', '.join(sorted(unknown))}; a task has {', '.join(known)}"
        )
    hints = hints_of(TaskOptions)
    for name, value in values.items():
        if value is not None:
            check("task", name, value, hints[name])
    return cast(TaskOptions, dict(values))


def current_workflow() -> Workflow | None:
    """Return the workflow of the innermost ``with``."""
    return _current.get()


def _as_tasks(value: "Task | Sequence[Task]") -> "list[Task]":
    tasks = [value] if isinstance(value, Task) else value
    if isinstance(tasks, str) or not isinstance(tasks, Sequence):
        raise AuthoringError(f">> joins tasks and lists of tasks, not {value!r}")
    for task in tasks:
        if not isinstance(task, Task):
            hint = "; call it to make its task" if callable(task) else ""
            raise AuthoringError(f">> joins tasks and lists of tasks, not {task!r}{hint}")
    return list(tasks)


def _parameter(parameter: Parameter) -> Any:
    default = scalar_text(parameter.default)
    if parameter.type == "string" and not parameter.description and default is not None:
        return default
    values = {"default": default, "type": parameter.type, "description": parameter.description}
    return {k: v for k, v in values.items() if v not in (None, "")}
