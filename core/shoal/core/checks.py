"""Check a workflow definition as people write it and report every problem at once.

Works on plain data (from YAML, JSON or the SDK). Each problem carries the path of the value it
speaks of, so that a loader can add the file and the line, and the API the field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from shoal.core.dag import find_cycles
from shoal.core.errors import ShoalError
from shoal.core.fire_times import instant
from shoal.core.logic.checks import findings as logic_findings
from shoal.core.model import WorkflowSpec
from shoal.core.parameter_checks import Path as Path
from shoal.core.parameter_checks import parameters_findings, params_findings
from shoal.core.task_types import TaskType, UnknownTaskType, load_task_type


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. ``path`` leads to the value: ("tasks", 2, "depends_on", 0)."""

    path: Path
    message: str
    # Where in which file, once a loader has looked it up.
    file: str | None = None
    line: int | None = None

    @property
    def field(self) -> str:
        """The path as text: ``tasks[2].depends_on[0]``."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        return f"{where}{self.field + ': ' if self.path else ''}{self.message}"


class InvalidDefinition(ShoalError, ValueError):
    """A workflow definition with problems; ``problems`` holds all of them."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{count}:\n" + "\n".join(f"  {problem}" for problem in problems))


@dataclass
class _Findings:
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, message: str) -> None:
        self.problems.append(Problem(path, message))


def check_workflow(raw: Any) -> WorkflowSpec:
    """Return the definition in ``raw``. Raises InvalidDefinition with every problem found."""
    if not isinstance(raw, Mapping):
        raise InvalidDefinition([Problem((), "a workflow is a mapping with name and tasks")])
    findings = _Findings()
    spec = _check_shape(raw, findings)
    tasks = raw.get("tasks")
    if isinstance(tasks, list | tuple):
        _check_graph(tasks, findings)
        for index, task in enumerate(tasks):
            if isinstance(task, Mapping):
                _check_params(task, ("tasks", index), findings)
    for path, message in parameters_findings(raw):
        findings.add(path, message)
    if spec is not None:
        _check_validity(spec, findings)
        for path, message in logic_findings(spec):
            findings.add(path, message)
    if findings.problems or spec is None:
        raise InvalidDefinition(findings.problems)
    return spec


def _check_shape(raw: Mapping[str, Any], findings: _Findings) -> WorkflowSpec | None:
    try:
        return WorkflowSpec.model_validate(dict(raw))
    except ValidationError as error:
        _add_pydantic(error, (), findings)
        return None


def _add_pydantic(error: ValidationError, prefix: Path, findings: _Findings) -> None:
    for item in error.errors():
        path = prefix + tuple(part for part in item["loc"] if part != "[key]")
        match item["type"]:
            case "too_short" if item["input"]:
                continue  # not empty: its members are wrong, and each of them is reported
            case "missing":
                message = "is required"
            case "extra_forbidden":
                message = "is no known field"
            case "string_pattern_mismatch":
                message = (
                    f"{item['input']!r} is no valid name: start with a letter or digit, then "
                    "letters, digits, '_', '.' or '-', at most 100 characters"
                )
                if "parameters" in path:
                    message = f"{item['input']!r} is no valid parameter name: letters, digits, '_'"
            case "value_error":
                message = str(item["ctx"]["error"])
            case "enum":
                message = f"{item['input']!r} is not one of {item['ctx']['expected']}"
            case _:
                message = item["msg"][:1].lower() + item["msg"][1:]
        findings.add(path, message)


def _check_graph(tasks: Sequence[Any], findings: _Findings) -> None:
    """Names twice, edges to nowhere, cycles: judged even if other fields are wrong."""
    first_at: dict[str, int] = {}
    upstream: dict[str, list[str]] = {}
    for index, task in enumerate(tasks):
        name = task.get("name") if isinstance(task, Mapping) else None
        if not isinstance(name, str):
            continue
        if name in first_at:
            findings.add(
                ("tasks", index, "name"), f"task {name!r} stands already at tasks[{first_at[name]}]"
            )
            continue
        first_at[name] = index
        edges = task.get("depends_on", ())
        edges = (edges,) if isinstance(edges, str) else edges
        upstream[name] = (
            [e for e in edges if isinstance(e, str)] if isinstance(edges, list | tuple) else []
        )
    for name, parents in upstream.items():
        for position, parent in enumerate(parents):
            where = ("tasks", first_at[name], "depends_on", position)
            if parent not in upstream:
                close = get_close_matches(parent, upstream, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                findings.add(
                    where, f"task {name!r} depends on {parent!r}, which does not exist" + hint
                )
            elif parent in parents[:position]:
                findings.add(where, f"task {name!r} names its upstream task {parent!r} twice")
    for cycle in find_cycles(upstream):
        findings.add(
            ("tasks", first_at[cycle[0]], "depends_on"),
            "the tasks wait for each other in a cycle: " + " → ".join(cycle),
        )


def _check_params(task: Mapping[str, Any], path: Path, findings: _Findings) -> None:
    kind, params = task.get("type"), task.get("params", {})
    if not isinstance(kind, str) or not isinstance(params, Mapping):
        return  # the shape check has said so
    try:
        task_type = load_task_type(kind)
    except UnknownTaskType as error:
        findings.add((*path, "type"), str(error))
        return
    try:
        task_type.Params.model_validate(dict(params))
    except ValidationError as error:
        _add_pydantic(error, (*path, "params"), findings)
    on_worker = issubclass(task_type, TaskType)
    for inner, message in params_findings(task_type.Params, params, on_worker=on_worker):
        findings.add((*path, "params", *inner), message)


def _check_validity(spec: WorkflowSpec, findings: _Findings) -> None:
    """A schedule must end after it starts; both are compared as instants."""
    for index, schedule in enumerate(spec.schedules):
        zone = schedule.timezone or spec.timezone
        start, end = instant(schedule.start, zone), instant(schedule.end, zone)
        if start is not None and end is not None and end <= start:
            message = f"must be later than the start, {start.isoformat()}"
            findings.add(("schedules", index, "end"), message)
