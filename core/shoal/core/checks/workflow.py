"""Check a workflow definition as people write it and report every problem at once.

Works on plain data (from YAML, JSON or the SDK). Each problem carries the path of the value it
speaks of, so that a loader can add the file and the line, and the API the field.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from shoal.core.checks.parameters import Finding, parameters_findings, params_findings
from shoal.core.checks.parameters import Path as Path
from shoal.core.checks.resources import names_findings, resources_findings
from shoal.core.definition.dag import find_cycles
from shoal.core.definition.environments import NO_ENVIRONMENT
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.errors import LONGEST_REASON, ShoalError, UnusablePlugin, shortened
from shoal.core.hints import MOST_MISTAKES, Hints
from shoal.core.logic.checks import findings as logic_findings
from shoal.core.macros import placeholders
from shoal.core.schedule.fire_times import instant
from shoal.core.task_types import (
    FindTaskType,
    TaskKind,
    TaskType,
    UnknownTaskType,
    Verbatim,
    fields_marked,
)


@dataclass(frozen=True)
class DefinitionProblem:
    """One thing that is wrong. ``path`` leads to the value: ("tasks", 2, "depends_on", 0)."""

    path: Path
    message: str
    # Where in which file, once a loader has found it.
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
    """A workflow definition with problems; ``problems`` holds all of them, or the first hundred."""

    def __init__(self, problems: list[DefinitionProblem]) -> None:
        self.problems = problems
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{count}:\n" + "\n".join(f"  {problem}" for problem in problems))


class _Enough(Exception):
    """There are so many problems that more of them would not help."""


@dataclass
class _Findings:
    problems: list[DefinitionProblem] = field(default_factory=list)
    hints: Hints = field(default_factory=Hints)

    def add(self, path: Path, message: str) -> None:
        if len(self.problems) >= MOST_MISTAKES:
            self.problems.append(DefinitionProblem((), f"and more than these {MOST_MISTAKES}"))
            raise _Enough
        self.problems.append(DefinitionProblem(path, message))


MAX_TASKS = 10_000
MAX_UPSTREAM = 1_000
"""Of a definition that is saved from now on; larger ones that are stored run on."""


def check_workflow(raw: Any, find_type: FindTaskType) -> WorkflowSpec:
    """Return the definition in ``raw``. Raises InvalidDefinition with the problems found.

    ``find_type`` is ``shoal.runtime.plugins.load_task_type``.
    """
    if not isinstance(raw, Mapping):
        raise InvalidDefinition(
            [DefinitionProblem((), "a workflow is a mapping with name and tasks")]
        )
    findings = _Findings()
    spec = None
    with suppress(_Enough):
        spec = _check(raw, findings, find_type)
    if findings.problems or spec is None:
        raise InvalidDefinition(findings.problems)
    return spec


def _check(
    raw: Mapping[str, Any], findings: _Findings, find_type: FindTaskType
) -> WorkflowSpec | None:
    tasks = raw.get("tasks")
    if isinstance(tasks, list | tuple) and len(tasks) > MAX_TASKS:
        findings.add(
            ("tasks",),
            f"has {len(tasks)} tasks, at most {MAX_TASKS} are allowed; use sub-workflows",
        )
        return None
    spec = _check_shape(raw, findings)
    if isinstance(tasks, list | tuple):
        _check_graph(tasks, findings)
        for index, task in enumerate(tasks):
            if isinstance(task, Mapping):
                _check_params(task, ("tasks", index), findings, find_type)
                for path, message in resources_findings(task, ("tasks", index)):
                    findings.add(path, message)
    for path, message in parameters_findings(raw):
        findings.add(path, message)
    if spec is not None:
        _check_validity(spec, findings)
        _check_descriptions(spec, findings)
        for path, message in logic_findings(spec, findings.hints):
            findings.add(path, message)
    return spec


def _check_shape(raw: Mapping[str, Any], findings: _Findings) -> WorkflowSpec | None:
    try:
        return WorkflowSpec.model_validate(_with_few_unknown(raw))
    except ValidationError as error:
        _add_pydantic(error, (), findings)
        return None


def _with_few_unknown(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition without the unknown fields beyond those that are reported.

    pydantic makes an error of each, and holds the interpreter for a second over 300,000 of them.
    """
    left = MOST_MISTAKES + 1
    found = _few_unknown(raw, WorkflowSpec.model_fields.keys(), left)
    left -= len(found.keys() - WorkflowSpec.model_fields.keys())
    tasks = found.get("tasks")
    if not isinstance(tasks, list | tuple):
        return found
    known = TaskSpec.model_fields.keys()
    if sum(len(task) for task in tasks if isinstance(task, Mapping)) <= len(tasks) * len(known):
        return found
    trimmed: list[Any] = []
    for task in tasks:
        if isinstance(task, Mapping):
            task = _few_unknown(task, known, left)
            left -= len(task.keys() - known)
        trimmed.append(task)
    return {**found, "tasks": trimmed}


def _few_unknown(raw: Mapping[Any, Any], known: Set[str], most: int) -> dict[Any, Any]:
    if len(raw) <= len(known):
        return dict(raw)
    unknown = islice((name for name in raw if name not in known), max(0, most))
    return {name: raw[name] for name in (*(one for one in raw if one in known), *unknown)}


def _never(_: ErrorDetails) -> bool:
    return False


def _add_pydantic(
    error: ValidationError,
    prefix: Path,
    findings: _Findings,
    is_open: Callable[[ErrorDetails], bool] = _never,
    known: Collection[str] = (),
) -> None:
    """Add what pydantic says, but for errors that ``is_open`` leaves to a later judgement.

    ``known``: the fields that there are, for hints.
    """
    errors = error.errors()
    # Of a union, each member says what it makes of the one value.
    open_at = {(item["loc"][:-1], item["input"]) for item in errors if is_open(item)}
    for item in errors:
        if is_open(item) or _is_member(item, open_at):
            continue
        path = prefix + tuple(part for part in item["loc"] if part != "[key]")
        match item["type"]:
            case "too_short" if item["input"]:
                continue  # not empty: its members are wrong, and each of them is reported
            case "missing":
                message = "is required"
            case "extra_forbidden":
                hint = findings.hints.of(str(item["loc"][-1]), known)
                message = f"is not a known field{hint}"
            case "string_pattern_mismatch" if prefix:  # of a task type's own
                message = f"{_shown(item['input'])} does not match {item['ctx']['pattern']}"
            case "string_pattern_mismatch":
                message = (
                    f"{_shown(item['input'])} is not a valid name: start with a letter or digit, "
                    "then letters, digits, '_', '.' or '-', at most 100 characters"
                )
                if "parameters" in path:
                    shown = _shown(item["input"])
                    message = f"{shown} is not a valid parameter name: letters, digits, '_'"
            case "value_error":
                message = shortened(str(item["ctx"]["error"]), LONGEST_REASON)
            case "union_tag_invalid":
                name, wanted = item["ctx"]["discriminator"], item["ctx"]["expected_tags"]
                message = f"{name} {_shown(item['ctx']['tag'])} is none; there are: {wanted}"
            case "union_tag_not_found":
                message = f"{item['ctx']['discriminator']} is required"
            case "enum":
                message = f"{_shown(item['input'])} is not one of {item['ctx']['expected']}"
            case _:
                message = item["msg"][:1].lower() + item["msg"][1:]
        findings.add(path, message)


# What a value can be wrong in that is still a text with placeholders: its form, not its kind.
_OF_FORM = ("_parsing", "_pattern_mismatch", "string_too_short", "string_too_long")
_CHOICES = ("literal_error", "enum")


def _is_open(item: ErrorDetails, programs: Collection[str]) -> bool:
    """Say whether an error is about a text whose value is not known yet.

    The worker judges it when it is rendered. In ``programs`` nothing is put in.
    """
    text, kind = item["input"], item["type"]
    return (
        isinstance(text, str)
        and placeholders.is_open(text)
        and (kind.endswith(_OF_FORM) or kind in _CHOICES)
        and item["loc"][0] not in programs
    )


def _is_member(item: ErrorDetails, open_at: Collection[tuple[Any, str]]) -> bool:
    text = item["input"]
    return isinstance(text, str) and (item["loc"][:-1], text) in open_at


def _shown(value: object) -> str:
    return shortened(repr(value), 120)


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
                ("tasks", index, "name"),
                f"task {_shown(name)} stands already at tasks[{first_at[name]}]",
            )
            continue
        first_at[name] = index
        edges = task.get("depends_on", ())
        edges = (edges,) if isinstance(edges, str) else edges
        upstream[name] = (
            [e for e in edges if isinstance(e, str)] if isinstance(edges, list | tuple) else []
        )
    for name, parents in upstream.items():
        where = ("tasks", first_at[name], "depends_on")
        if len(parents) > MAX_UPSTREAM:
            findings.add(
                where, f"names {len(parents)} upstream tasks, at most {MAX_UPSTREAM} are allowed"
            )
            continue
        before = set[str]()
        for position, parent in enumerate(parents):
            shown = f"task {_shown(name)}", _shown(parent)
            if parent not in upstream:
                hint = findings.hints.of(parent, upstream)
                message = f"{shown[0]} depends on {shown[1]}, which does not exist" + hint
                findings.add((*where, position), message)
            elif parent in before:
                findings.add(
                    (*where, position), f"{shown[0]} names its upstream task {shown[1]} twice"
                )
            before.add(parent)
    for cycle in find_cycles(upstream):
        findings.add(
            ("tasks", first_at[cycle[0]], "depends_on"),
            shortened("the tasks wait for each other in a cycle: " + " → ".join(cycle), 1_000),
        )


def _check_params(
    task: Mapping[str, Any], path: Path, findings: _Findings, find_type: FindTaskType
) -> None:
    kind, params = task.get("type"), task.get("params", {})
    if not isinstance(kind, str) or not isinstance(params, Mapping):
        return  # the shape check has said so
    try:
        task_type = find_type(kind)
    except (UnknownTaskType, UnusablePlugin) as error:
        findings.add((*path, "type"), str(error))
        return
    for inner, message in environment_findings(task, task_type):
        findings.add((*path, *inner), message)
    on_worker = issubclass(task_type, TaskType)  # masters render no params
    try:
        task_type.Params.model_validate(dict(params))
    except ValidationError as error:
        programs = fields_marked(task_type.Params, Verbatim)
        is_open = (lambda item: _is_open(item, programs)) if on_worker else _never
        known = task_type.Params.model_fields
        _add_pydantic(error, (*path, "params"), findings, is_open, known)
    for inner, message in params_findings(task_type.Params, params, on_worker=on_worker):
        findings.add((*path, "params", *inner), message)
    for inner, message in names_findings(task_type.Params, params):
        findings.add((*path, "params", *inner), message)


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def _check_descriptions(spec: WorkflowSpec, findings: _Findings) -> None:
    """Descriptions are shown on terminals: lines and tabs are fine, commands to them are not."""
    texts: list[tuple[Path, str]] = [((), spec.description)]
    texts += [(("tasks", n), task.description) for n, task in enumerate(spec.tasks)]
    for path, text in texts:
        if found := _CONTROL.search(text):
            findings.add((*path, "description"), f"holds the control character {found[0]!r}")


def _check_validity(spec: WorkflowSpec, findings: _Findings) -> None:
    """A schedule must end after it starts; both are compared as instants."""
    for index, schedule in enumerate(spec.schedules):
        zone = schedule.timezone or spec.timezone
        start, end = instant(schedule.start, zone), instant(schedule.end, zone)
        if start is not None and end is not None and end <= start:
            message = f"must be later than the start, {start.isoformat()}"
            findings.add(("schedules", index, "end"), message)


def environment_findings(task: Mapping[str, Any], kind: type[TaskKind[Any]]) -> Iterator[Finding]:
    """Check the environment that a task names; ``kind`` is its type."""
    named = task.get("environment")
    if isinstance(named, str) and named != NO_ENVIRONMENT and not kind.uses_environment:
        text = f"tasks of the type {task.get('type')} start no program, so they have none"
        yield ("environment",), f"{text}; leave it out"
