"""Whole projects out and in: workflows with what they name, by names."""

import asyncio
import json
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Body, Query, Response

from shoal.api.access.callers import Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.operations.authoring.archive import (
    ArchiveItem,
    CalendarDocument,
    DocumentKind,
    GroupDocument,
    environments_of,
    export,
    unpack,
)
from shoal.api.operations.authoring.checks import Checked, problems_there
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.authoring import ExportOut, ImportIn, ImportItem, ImportOut
from shoal.api.services import FeedDep, LargeWorkDep, StoreDep
from shoal.api.web.answers import answer
from shoal.api.web.errors import FieldError, InvalidRequest, TooManyRequests
from shoal.api.web.problems import ProblemField, documented
from shoal.core.access.permissions import Permission
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.runs.filters import WorkflowFilter
from shoal.runtime.documents.yaml_text import documents_yaml
from shoal.runtime.side.process import WAIT_S, NoTurn, SideProcesses, WorkTooLarge
from shoal.sql import UnitOfWork
from shoal.sql.errors import Archived, NotFound

router = strict_router("exchange")

MOST_WORKFLOWS = 1_000
EXPORT_CPU_S = 30.0  # of processor time: some 150,000 tasks
_SHORT_CHARACTERS = 64_000  # of JSON: what is written as YAML in a thread
_ORDER = list(DocumentKind)
Result = Literal["created", "changed", "unchanged", "refused"]


@router.get(
    "/projects/{project}/export",
    summary="Export workflows",
    response_model=ExportOut,
    responses=documented(404),
)
@needs(Permission.PROJECT_READ, large=True)
async def export_project(
    store: StoreDep,
    work: LargeWorkDep,
    project: ProjectName,
    name: Annotated[
        list[str],
        Query(max_length=MOST_WORKFLOWS, description="These workflows; left out: all in use."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """The newest definitions as YAML, with the calendars and concurrency groups that they name.

    Secrets, passwords and runs are not part of it. Nothing says which project it was.
    """
    async with store.unit_of_work(read_only=True) as uow:
        names = sorted(set(name))
        if not names:
            wanted = WorkflowFilter(project=project)
            found = await uow.workflow_list.page(wanted, limit=MOST_WORKFLOWS + 1)
            names = [one.name for one in found]
        if len(names) > MOST_WORKFLOWS:
            said = f"the project has more than {MOST_WORKFLOWS} workflows: say which"
            raise InvalidRequest([FieldError("name", said)])
        specs = [(await uow.workflows.version_by_name(project, one)).spec for one in names]
        documents = await export(uow, project, specs)
    text = await _written(work, await asyncio.to_thread(list, documents))

    def made() -> ExportOut:
        return ExportOut(project=project, text=text, environments=environments_of(specs))

    return await answer(made, sum(len(spec.tasks) for spec in specs))


async def _written(work: SideProcesses, documents: list[dict[str, Any]]) -> str:
    length = 0
    for one in documents:
        length += len(json.dumps(one)) if length <= _SHORT_CHARACTERS else 0
    if length <= _SHORT_CHARACTERS:
        return await asyncio.to_thread(documents_yaml, documents)
    try:
        return await work.run(object(), documents_yaml, documents, cpu_s=EXPORT_CPU_S)
    except WorkTooLarge as error:
        said = f"these workflows are too large for one export: {error}; name fewer of them"
        raise InvalidRequest([FieldError("name", said)]) from None
    except NoTurn as error:
        raise TooManyRequests(str(error), WAIT_S) from None


@router.post(
    "/projects/{project}/import",
    summary="Import workflows",
    response_model=ImportOut,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.PROJECT_EDIT, audit="project.import", large=True)
async def import_project(
    store: StoreDep,
    feed: FeedDep,
    caller: Calling,
    project: ProjectName,
    body: Annotated[ImportIn, Body()],
    dry_run: Annotated[bool, Query(description="Only say what would happen, for each.")] = False,
) -> Response:
    """Stores all documents of a text, or none: workflows, calendars and concurrency groups.

    What has the same name is changed, workflows by a new version. With `dry_run` the answer has
    the reasons of what is refused; without, they are the errors of a 422.
    """
    items, unreadable = await asyncio.to_thread(unpack, project, body.text)
    if unreadable:
        raise InvalidDefinition(unreadable)
    outcomes: dict[int, ImportItem] = {}
    refused: list[DefinitionProblem] = []
    async with store.unit_of_work() as uow:
        await uow.projects.require(project)
        importer = _Importer(uow, project, store.clock(), caller.name)
        for index in sorted(range(len(items)), key=lambda n: _ORDER.index(items[n].kind)):
            outcomes[index], problems = await importer.take(items[index])
            refused += [
                DefinitionProblem(("items", index, *one.path), one.message, one.file, one.line)
                for one in problems
            ]
        if not dry_run and not refused:
            await uow.commit()
    if refused and not dry_run:
        raise InvalidDefinition(refused)
    feed.poll_soon()
    out = ImportOut(
        project=project,
        dry_run=dry_run,
        stored=not dry_run,
        items=[outcomes[index] for index in range(len(items))],
    )
    return await answer(lambda: out, len(items))


class _Importer:
    """Stores one document after the other, in one transaction."""

    def __init__(self, uow: UnitOfWork, project: str, at: datetime, by: str) -> None:
        self._uow, self._project, self._at, self._by = uow, project, at, by

    async def take(self, item: ArchiveItem) -> tuple[ImportItem, tuple[DefinitionProblem, ...]]:
        """Store one document; return what became of it, and why it is refused."""
        problems, result, version = item.problems, "refused", None
        match item.content:
            case CalendarDocument() as calendar:
                result = await self._calendar(calendar)
            case GroupDocument() as group:
                result = await self._group(group)
            case Checked() as checked:
                problems = tuple([checked.locate(one) for one in await self._problems(checked)])
                if not problems:
                    result, version = await self._workflow(checked)
        outcome = ImportItem.model_validate(
            {
                "kind": item.kind,
                "name": item.name,
                "line": item.line,
                "result": result,
                "version": version,
                "problems": [
                    ProblemField(field=one.field, message=one.message, line=one.line)
                    for one in problems
                ],
            }
        )
        return outcome, problems

    async def _problems(self, checked: Checked) -> list[DefinitionProblem]:
        spec = checked.require()
        try:
            found = await self._uow.workflows.get(self._project, spec.name)
        except NotFound:
            pass
        else:
            if found.archived_at is not None:
                return [DefinitionProblem(("name",), str(Archived(self._project, spec.name)))]
        return await problems_there(self._uow, spec)

    async def _workflow(self, checked: Checked) -> tuple[Result, int]:
        done = await self._uow.workflows.publish(checked.require(), self._at, by=self._by)
        version = done.version.version
        if not done.created:
            return "unchanged", version
        return ("created" if version == 1 else "changed"), version

    async def _calendar(self, new: CalendarDocument) -> Result:
        days = tuple(sorted(set(new.days)))
        try:
            old = await self._uow.calendars.get(self._project, new.name)
        except NotFound:
            result: Result = "created"
        else:
            if (old.days, old.description) == (days, new.description):
                return "unchanged"
            result = "changed"
        await self._uow.calendars.put(self._project, new.name, days, new.description, self._at)
        return result

    async def _group(self, new: GroupDocument) -> Result:
        try:
            old = await self._uow.concurrency.get(self._project, new.name)
        except NotFound:
            result: Result = "created"
        else:
            if (old.slots, old.description) == (new.slots, new.description):
                return "unchanged"
            result = "changed"
        await self._uow.concurrency.put(
            self._project, new.name, new.slots, new.description, self._at
        )
        return result
