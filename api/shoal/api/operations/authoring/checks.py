"""Definitions as they arrive, checked: by themselves, and against what projects have."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.api.web.answers import MOST_AT_ONCE
from shoal.core.access.grants import Grant, no_such_file, reaches
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition.model import WorkflowSpec
from shoal.core.definition.resources import ResourceLocator, foreign, is_shared
from shoal.core.macros import placeholders
from shoal.core.task_types import ResourceName, fields_marked
from shoal.runtime.documents.source import DocumentSource
from shoal.runtime.documents.yaml_file import read_yaml
from shoal.runtime.plugins import check_definition, load_task_type
from shoal.sql import UnitOfWork

T = TypeVar("T")
_TEXT = "the text"  # what places in it are called, which have lines


@dataclass(frozen=True)
class Checked:
    """A definition and what is wrong with it; ``spec`` is there if nothing is.

    ``text``: what it was read from. ``source``: where in that each of its values stands.
    """

    spec: WorkflowSpec | None
    problems: tuple[DefinitionProblem, ...]
    text: str | None = None
    source: DocumentSource | None = None

    def require(self) -> WorkflowSpec:
        """Return the definition. Raises InvalidDefinition."""
        if self.spec is None or self.problems:
            raise InvalidDefinition(list(self.problems))
        return self.spec

    def locate(self, problem: DefinitionProblem) -> DefinitionProblem:
        """Return a problem with the line that it is about, where there is one."""
        return problem if self.source is None else self.source.locate(problem)


async def check(
    project: str, name: str, text: str | None, definition: Mapping[str, Any] | None
) -> Checked:
    """Return what is to be published as ``project``/``name``, checked by itself.

    Either a text or a definition is given. Much of it is long work, so it is done in a thread.
    """
    if text is not None:
        return await asyncio.to_thread(_check_text, project, name, text)
    return await asyncio.to_thread(check_value, project, name, definition)


def _check_text(project: str, name: str, text: str) -> Checked:
    problems: list[DefinitionProblem] = []
    sources = read_yaml(text, _TEXT, problems)
    if not problems and len(sources) != 1:
        said = "is empty" if not sources else f"holds {len(sources)} documents; keep one"
        problems.append(DefinitionProblem((), said, _TEXT, 1))
    if problems:
        return Checked(None, tuple(problems), text)
    return check_value(project, name, sources[0].value, sources[0], text)


def check_value(
    project: str,
    name: str,
    value: Any,
    source: DocumentSource | None = None,
    text: str | None = None,
) -> Checked:
    """Return a definition, checked by itself. On any thread."""
    problems: list[DefinitionProblem] = []
    if isinstance(value, Mapping):
        problems += [
            DefinitionProblem((field,), f"is {value[field]!r:.120}, but it is about {expected!r}")
            for field, expected in (("project", project), ("name", name))
            if field in value and value[field] != expected
        ]
        value = {**value, "project": project, "name": name}
    spec = None
    try:
        spec = check_definition(value)
    except InvalidDefinition as error:
        problems += error.problems
    if source is not None:
        problems = [source.locate(one) for one in problems]
    return Checked(None if problems else spec, tuple(problems), text, source)


async def problems_there(uow: UnitOfWork, spec: WorkflowSpec) -> list[DefinitionProblem]:
    """Return what a definition names that is not there, or not for its project."""
    return [*await _not_granted(uow, spec), *await uow.workflows.problems(spec)]


async def require_grants(uow: UnitOfWork, spec: WorkflowSpec) -> None:
    """Raise InvalidDefinition for each other project that is reached without its grant."""
    if problems := await _not_granted(uow, spec):
        raise InvalidDefinition(problems)


async def _not_granted(uow: UnitOfWork, spec: WorkflowSpec) -> list[DefinitionProblem]:
    """The words are the same whether there is such a project or not."""
    return [*await _not_reached(uow, spec), *await _not_shared(uow, spec)]


async def _not_shared(uow: UnitOfWork, spec: WorkflowSpec) -> list[DefinitionProblem]:
    """Return what names files of other projects, as far as that is known before they are rendered.

    Whether a file is there is known when the task runs, as with the project's own.
    """
    named = await _of_tasks(spec, _foreign)
    if not named:
        return []
    shared = await uow.resource_grants.shared({home for *_, home in named}, spec.project)
    problems = []
    for path, text, home in named:
        is_known = not placeholders.is_open(text)
        files = shared.get(home, frozenset())
        given = is_shared(files, ResourceLocator.parse(text)) if is_known else files
        if not given:
            problems.append(DefinitionProblem(path, no_such_file(home, text, spec.project)))
    return problems


def _foreign(spec: WorkflowSpec) -> list[tuple[tuple[str | int, ...], str, str]]:
    """Return where files of other projects are named, their names, and the projects."""
    found = ((path, text, foreign(text)) for path, text in _resources(spec))
    return [
        (path, text, home)
        for path, text, home in found
        if home is not None and home != spec.project
    ]


async def _of_tasks(spec: WorkflowSpec, find: Callable[[WorkflowSpec], list[T]]) -> list[T]:
    """Return what ``find`` finds in all tasks; if there are many, beside the event loop."""
    return await asyncio.to_thread(find, spec) if len(spec.tasks) > MOST_AT_ONCE else find(spec)


def _resources(spec: WorkflowSpec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for index, task in enumerate(spec.tasks):
        for name in sorted(fields_marked(load_task_type(task.type).Params, ResourceName)):
            if isinstance(text := task.params.get(name), str):
                yield ("tasks", index, "params", name), text
        for number, text in enumerate(task.resources):
            yield ("tasks", index, "resources", number), text


async def _not_reached(uow: UnitOfWork, spec: WorkflowSpec) -> list[DefinitionProblem]:
    found = await _of_tasks(spec, lambda spec: [*reaches(spec)])
    problems = []
    for level in dict.fromkeys(one.needs for one in found):
        pairs = {(one.project, spec.project) for one in found if one.needs is level}
        given = await uow.grants.given(pairs, level)
        problems += [
            DefinitionProblem(
                one.path,
                f"there is no project {one.project} that lets project {spec.project} "
                f"{_WHAT[level]}; if there is one, an owner there can let it: "
                f"shoal grant set {spec.project} {level} --project {one.project}",
            )
            for one in found
            if one.needs is level and (one.project, spec.project) not in given
        ]
    return problems


_WHAT = {Grant.SEE: "wait for its runs", Grant.RUN: "run its workflows"}
