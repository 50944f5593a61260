"""Workflows of a project with what they name, as documents: ``kind``, ``name``, and the rest.

Secrets and passwords are named by definitions and never in one, so there are none here. Calendars
and concurrency groups are of the project and go along. Environments are of the cluster: who may
edit a project may not make one, so they have to be there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from shoal.api.operations.authoring.checks import Checked, check_value
from shoal.api.schemas.concurrency import ConcurrencyGroupIn
from shoal.api.schemas.schedules import CalendarIn
from shoal.core.checks.workflow import DefinitionProblem
from shoal.core.definition.environments import NO_ENVIRONMENT
from shoal.core.definition.fields import NAME_PATTERN
from shoal.core.definition.model import WorkflowSpec
from shoal.core.hints import MOST_MISTAKES
from shoal.runtime.documents.source import DocumentSource
from shoal.runtime.documents.yaml_file import read_yaml
from shoal.runtime.documents.yaml_text import definition_yaml
from shoal.sql import UnitOfWork

MOST_DOCUMENTS = 2_000
_TEXT = "the text"


class Kind(StrEnum):
    """What a document holds. Later ones name earlier ones."""

    CALENDAR = "calendar"
    GROUP = "concurrency-group"
    WORKFLOW = "workflow"


Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


class CalendarDocument(CalendarIn):
    """A calendar."""

    name: Name = Field()


class GroupDocument(ConcurrencyGroupIn):
    """A concurrency group."""

    name: Name = Field()


@dataclass(frozen=True)
class Item:
    """One document. ``content`` is None if it is wrong."""

    kind: Kind
    name: str
    line: int
    content: CalendarDocument | GroupDocument | Checked | None
    problems: tuple[DefinitionProblem, ...] = ()


# -- out --------------------------------------------------------------------------------------


async def export(uow: UnitOfWork, project: str, specs: list[WorkflowSpec]) -> Iterator[str]:
    """Return the documents of workflows and of what they name; each is written when asked for."""
    calendars = sorted({s.calendar for spec in specs for s in spec.schedules if s.calendar})
    groups = sorted(
        {t.concurrency_group for spec in specs for t in spec.tasks if t.concurrency_group}
    )
    found: list[tuple[Kind, Mapping[str, Any]]] = []
    for name in calendars:
        calendar = await uow.calendars.get(project, name)
        days = [day.isoformat() for day in calendar.days]
        found.append((Kind.CALENDAR, _described(name, calendar.description, days=days)))
    for name in groups:
        group = await uow.concurrency.get(project, name)
        found.append((Kind.GROUP, _described(name, group.description, slots=group.slots)))
    return _documents(found, specs)


def _described(name: str, description: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **({"description": description} if description else {}), **more}


def _documents(
    others: list[tuple[Kind, Mapping[str, Any]]], specs: list[WorkflowSpec]
) -> Iterator[str]:
    for kind, content in others:
        yield definition_yaml({"kind": str(kind), **content})
    for spec in specs:
        content = {key: value for key, value in spec.canonical().items() if key != "project"}
        yield definition_yaml({"kind": str(Kind.WORKFLOW), **content})


def environments_of(specs: list[WorkflowSpec]) -> list[str]:
    """Return the environments that workflows name."""
    found = {name for spec in specs for name in (spec.environment, *_of_tasks(spec))}
    return sorted(name for name in found if name is not None and name != NO_ENVIRONMENT)


def _of_tasks(spec: WorkflowSpec) -> Iterator[str | None]:
    return (task.environment for task in spec.tasks)


# -- in ---------------------------------------------------------------------------------------


def unpack(project: str, text: str) -> tuple[list[Item], list[DefinitionProblem]]:
    """Return the documents of a text, and why it cannot be read. On any thread."""
    problems: list[DefinitionProblem] = []
    sources = read_yaml(text, _TEXT, problems)
    if not problems and not sources:
        problems.append(DefinitionProblem((), "holds no document", _TEXT, 1))
    if len(sources) > MOST_DOCUMENTS:
        said = f"holds {len(sources)} documents, at most {MOST_DOCUMENTS} are taken"
        problems.append(DefinitionProblem((), said, _TEXT, 1))
    if problems:
        return [], problems
    items = [_item(project, source) for source in sources]
    return _once(items), []


def _item(project: str, source: DocumentSource) -> Item:
    line = source.where(()).line
    value = source.value
    if not isinstance(value, dict):
        return _wrong(Kind.WORKFLOW, "", line, "is not a mapping with kind and name")
    given = {key: one for key, one in value.items() if key != "kind"}
    try:
        kind = Kind(value.get("kind", Kind.WORKFLOW))
    except ValueError:
        known = ", ".join(Kind)
        return _wrong(Kind.WORKFLOW, "", line, f"kind is none of {known}", "kind")
    name = value.get("name")
    if not isinstance(name, str):
        return _wrong(kind, "", line, "is required", "name")
    if kind is Kind.WORKFLOW:
        checked = check_value(project, name, given, source)
        return Item(kind, name, line, checked if checked.spec else None, checked.problems)
    model = CalendarDocument if kind is Kind.CALENDAR else GroupDocument
    try:
        return Item(kind, name, line, model.model_validate(given))
    except ValidationError as error:
        found = [
            source.locate(DefinitionProblem(tuple(one["loc"]), one["msg"]))
            for one in error.errors()
        ]
        return Item(kind, name, line, None, tuple(found[:MOST_MISTAKES]))


def _wrong(kind: Kind, name: str, line: int, message: str, *path: str) -> Item:
    return Item(kind, name, line, None, (DefinitionProblem(path, message, _TEXT, line),))


def _once(items: list[Item]) -> list[Item]:
    """Return them; of two of one name the second is wrong."""
    seen: dict[tuple[Kind, str], int] = {}
    found = []
    for item in items:
        key = (item.kind, item.name)
        if item.name and key in seen:
            found.append(_wrong(*key, item.line, f"stands already in line {seen[key]}", "name"))
        else:
            seen[key] = item.line
            found.append(item)
    return found
