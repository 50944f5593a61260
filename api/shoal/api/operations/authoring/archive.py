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
from shoal.sql import UnitOfWork

MOST_DOCUMENTS = 2_000
_TEXT = "the text"


class DocumentKind(StrEnum):
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
class ArchiveItem:
    """One document. ``content`` is None if it is wrong."""

    kind: DocumentKind
    name: str
    line: int
    content: CalendarDocument | GroupDocument | Checked | None
    problems: tuple[DefinitionProblem, ...] = ()


# -- out --------------------------------------------------------------------------------------


async def export(
    uow: UnitOfWork, project: str, specs: list[WorkflowSpec]
) -> Iterator[dict[str, Any]]:
    """Return the documents of workflows and of what they name; each is made when asked for."""
    calendars = sorted({s.calendar for spec in specs for s in spec.schedules if s.calendar})
    groups = sorted(
        {t.concurrency_group for spec in specs for t in spec.tasks if t.concurrency_group}
    )
    found: list[tuple[DocumentKind, Mapping[str, Any]]] = []
    for name in calendars:
        calendar = await uow.calendars.get(project, name)
        days = [day.isoformat() for day in calendar.days]
        found.append((DocumentKind.CALENDAR, _described(name, calendar.description, days=days)))
    for name in groups:
        group = await uow.concurrency.get(project, name)
        found.append((DocumentKind.GROUP, _described(name, group.description, slots=group.slots)))
    return _documents(found, specs)


def _described(name: str, description: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **({"description": description} if description else {}), **more}


def _documents(
    others: list[tuple[DocumentKind, Mapping[str, Any]]], specs: list[WorkflowSpec]
) -> Iterator[dict[str, Any]]:
    for kind, content in others:
        yield {"kind": str(kind), **content}
    for spec in specs:
        content = {key: value for key, value in spec.canonical().items() if key != "project"}
        yield {"kind": str(DocumentKind.WORKFLOW), **content}


def environments_of(specs: list[WorkflowSpec]) -> list[str]:
    """Return the environments that workflows name."""
    found = {spec.environment for spec in specs}
    found |= {task.environment for spec in specs for task in spec.tasks}
    return sorted(name for name in found if name is not None and name != NO_ENVIRONMENT)


# -- in ---------------------------------------------------------------------------------------


def unpack(project: str, text: str) -> tuple[list[ArchiveItem], list[DefinitionProblem]]:
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


def _item(project: str, source: DocumentSource) -> ArchiveItem:
    line = source.where(()).line
    value = source.value
    if not isinstance(value, dict):
        return _wrong(DocumentKind.WORKFLOW, "", line, "is not a mapping with kind and name")
    given = {key: one for key, one in value.items() if key != "kind"}
    try:
        kind = DocumentKind(value.get("kind", DocumentKind.WORKFLOW))
    except ValueError:
        known = ", ".join(DocumentKind)
        return _wrong(DocumentKind.WORKFLOW, "", line, f"kind is none of {known}", "kind")
    name = value.get("name")
    if not isinstance(name, str):
        return _wrong(kind, "", line, "is required", "name")
    if kind is DocumentKind.WORKFLOW:
        checked = check_value(project, name, given, source)
        return ArchiveItem(kind, name, line, checked if checked.spec else None, checked.problems)
    model = CalendarDocument if kind is DocumentKind.CALENDAR else GroupDocument
    try:
        return ArchiveItem(kind, name, line, model.model_validate(given))
    except ValidationError as error:
        found = [
            source.locate(DefinitionProblem(tuple(one["loc"]), one["msg"]))
            for one in error.errors()
        ]
        return ArchiveItem(kind, name, line, None, tuple(found[:MOST_MISTAKES]))


def _wrong(kind: DocumentKind, name: str, line: int, message: str, *path: str) -> ArchiveItem:
    return ArchiveItem(kind, name, line, None, (DefinitionProblem(path, message, _TEXT, line),))


def _once(items: list[ArchiveItem]) -> list[ArchiveItem]:
    """Return them; of two of one name the second is wrong."""
    seen: dict[tuple[DocumentKind, str], int] = {}
    found = []
    for item in items:
        key = (item.kind, item.name)
        if item.name and key in seen:
            found.append(_wrong(*key, item.line, f"stands already in line {seen[key]}", "name"))
        else:
            seen[key] = item.line
            found.append(item)
    return found
