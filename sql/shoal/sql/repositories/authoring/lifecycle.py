"""What becomes of workflows: renamed, archived, deleted. Their history stays in any case."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import func, select, update

from shoal.core.access.authorization import Visible
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.model import WorkflowSpec
from shoal.core.logic.references import renamed
from shoal.core.runs.records import StoredWorkflow
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import Archived, OpenInstances, WorkflowExists
from shoal.sql.repositories.authoring.drafts import Drafts
from shoal.sql.repositories.authoring.layouts import Layouts
from shoal.sql.repositories.authoring.references import References, Referrers
from shoal.sql.repositories.definitions.schedules import Schedules
from shoal.sql.repositories.definitions.workflows import PublishedVersion, WorkflowRepository
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.schema import tables
from shoal.sql.schema.tables import (
    HAS_NOT_ENDED,
    IS_ACTIVE_BACKFILL,
    backfill,
    workflow,
    workflow_instance,
)

_MOST_SHOWN = 20  # open instances that are named


@dataclass(frozen=True)
class Hanging:
    """What hangs on a workflow. ``open_ids``: the newest of its ``open_count`` open instances."""

    open_count: int
    open_ids: tuple[int, ...]
    schedules: int
    backfills: int
    drafts: int
    referrers: Referrers


class Lifecycle:
    """Changes rows of ``workflow`` as a whole."""

    def __init__(
        self,
        connection: Connection,
        workflows: WorkflowRepository,
        schedules: Schedules,
        references: References,
        drafts: Drafts,
        layouts: Layouts,
        events: Events,
    ) -> None:
        self._connection = connection
        self._workflows = workflows
        self._schedules = schedules
        self._references = references
        self._drafts = drafts
        self._layouts = layouts
        self._events = events

    async def hanging(self, found: StoredWorkflow, visible: Visible) -> Hanging:
        """Return what hangs on a workflow, as far as the caller may see it."""
        i = workflow_instance.c
        is_open = (i.workflow_id == found.id) & HAS_NOT_ENDED
        count = await self._connection.scalar(select(func.count()).where(is_open))
        newest = select(i.id).where(is_open).order_by(i.id.desc()).limit(_MOST_SHOWN)
        backfills = await self._connection.scalar(
            select(func.count()).where(backfill.c.workflow_id == found.id, IS_ACTIVE_BACKFILL)
        )
        return Hanging(
            open_count=count or 0,
            open_ids=tuple(row.id for row in await self._connection.rows(newest)),
            schedules=len(await self._schedules.of_workflow(found.project, found.name)),
            backfills=backfills or 0,
            drafts=await self._drafts.count(found.project, found.name),
            referrers=await self._references.to(found.project, found.name, visible),
        )

    async def delete(
        self, project: str, name: str, at: datetime | None = None, *, leaving_runs: bool = False
    ) -> None:
        """Delete a workflow, its schedules and its layout; its history stays.

        Raises NotFound, and OpenInstances while an instance has not ended, unless such go on.
        """
        found = await self._workflows.lock(project, name)
        unfinished = await self._connection.scalar(
            select(func.count()).where(workflow_instance.c.workflow_id == found.id, HAS_NOT_ENDED)
        )
        if unfinished and not leaving_runs:
            raise OpenInstances(project, name, unfinished)
        await self._schedules.delete_of(found.id)
        await self._layouts.delete(found.id)
        at = at or datetime.now(UTC)
        await self._connection.execute(
            update(workflow).where(workflow.c.id == found.id).values(deleted_at=at)
        )
        data = {"workflow": name}
        await self._events.add([NewEvent(at, "workflow.deleted", project, data)])

    async def rename(
        self, project: str, name: str, new: str, at: datetime, by: str
    ) -> PublishedVersion:
        """Give a workflow another name, as a new version of it.

        Instances, schedules and drafts go on with it. Instances that have begun keep the
        definition, and the name in it, that they have begun with. Raises NotFound, Archived,
        WorkflowExists.
        """
        found = await self._workflows.lock(project, name)
        if found.archived_at is not None:
            raise Archived(project, name)
        await self._require_free(project, new)
        spec = await self._workflows.spec(found.id, found.version)
        await self._connection.execute(
            update(workflow).where(workflow.c.id == found.id).values(name=new)
        )
        await self._drafts.rename(project, name, new)
        changed = WorkflowSpec.model_validate(renamed(spec, new))
        done = await self._workflows.publish(changed, at, by=by)
        data = {"workflow": new, "before": name}
        await self._events.add([NewEvent(at, "workflow.renamed", project, data)])
        return done

    async def _require_free(self, project: str, name: str) -> None:
        query = (
            select(workflow.c.deleted_at)
            .join_from(workflow, tables.project)
            .where(tables.project.c.name == project, workflow.c.name == name)
        )
        row = await self._connection.first(query)
        if row is not None:
            raise WorkflowExists(project, name, is_deleted=row.deleted_at is not None)

    async def archive(self, project: str, name: str, at: datetime) -> StoredWorkflow:
        """Prevent all starts: by schedule, request, backfill or as a sub-workflow.

        What runs goes on. Raises NotFound.
        """
        found = await self._workflows.lock(project, name)
        if found.archived_at is None:
            await self._schedules.suspend(found.id)
            await self._set(found, at, at)
        return await self._workflows.get(project, name)

    async def unarchive(self, project: str, name: str, at: datetime) -> StoredWorkflow:
        """Undo ``archive``; schedules fire from now on. Raises NotFound, InvalidDefinition.

        What its definition names may have been deleted meanwhile.
        """
        found = await self._workflows.lock(project, name)
        if found.archived_at is not None:
            spec = await self._workflows.spec(found.id, found.version)
            if problems := await self._workflows.problems(spec):
                raise InvalidDefinition(problems)
            await self._schedules.resume(found.id, at)
            await self._set(found, None, at)
        return await self._workflows.get(project, name)

    async def _set(self, found: StoredWorkflow, archived_at: datetime | None, at: datetime) -> None:
        await self._connection.execute(
            update(workflow).where(workflow.c.id == found.id).values(archived_at=archived_at)
        )
        kind = "workflow.unarchived" if archived_at is None else "workflow.archived"
        await self._events.add([NewEvent(at, kind, found.project, {"workflow": found.name})])
