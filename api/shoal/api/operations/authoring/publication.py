"""Publishing, and what is answered to it."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from fastapi import Response

from shoal.api.operations.feed import Feed
from shoal.api.schemas.definitions import ChangeOut, PublishOut, WorkflowDetail, WorkflowOut
from shoal.api.web.answers import answer
from shoal.core.access.authorization import Visible
from shoal.core.definition.diff import diff
from shoal.core.definition.kinds import WITH_CHILDREN
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.records import StoredWorkflow
from shoal.sql import UnitOfWork
from shoal.sql.repositories.definitions.workflows import PublishedVersion


class Tagged(Protocol):
    """What the ETag of a workflow is made of."""

    @property
    def project(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def archived_at(self) -> datetime | None: ...


def tag_of(found: Tagged) -> str:
    """Return the ETag of a workflow: another after each change of it."""
    is_archived = found.archived_at is not None
    state = [found.project, found.name, found.version, found.digest, is_archived]
    return f'"{hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32]}"'


async def detail_of(uow: UnitOfWork, project: str, name: str) -> WorkflowDetail:
    """Return a workflow, locked until the end. Raises NotFound."""
    found = await uow.workflows.lock(project, name)
    return detail(found, await uow.workflows.spec(found.id, found.version))


def detail(found: StoredWorkflow, spec: WorkflowSpec) -> WorkflowDetail:
    """Return a workflow with its newest definition as an answer."""
    return WorkflowDetail(**WorkflowOut.of(found).model_dump(), definition=spec.canonical())


async def published(
    uow: UnitOfWork, spec: WorkflowSpec, at: datetime, *, source: str | None = None, by: str
) -> tuple[PublishedVersion, WorkflowSpec | None]:
    """Publish a definition; return what that did, and the definition before."""
    done = await uow.workflows.publish(spec, at, source=source, by=by)
    version = done.version
    before: WorkflowSpec | None = None
    if done.created and version.version > 1:
        # Read after publishing: it has waited for others that published at the same time.
        before = (await uow.workflows.version(version.workflow_id, version.version - 1)).spec
    return done, before


async def warnings_of(uow: UnitOfWork, spec: WorkflowSpec, visible: Visible) -> list[str]:
    """Return what is allowed in a definition and probably a mistake."""
    if not any(task.type in WITH_CHILDREN for task in spec.tasks):
        return []
    way = await uow.references.cycle(spec.project, spec.canonical(), visible)
    if not way:
        return []
    names = " -> ".join(name if home == spec.project else f"{home}/{name}" for home, name in way)
    return [
        f"the workflow runs itself: {names}; each run starts others until the limit of "
        "sub-workflows is reached (max_descendants in [master])"
    ]


async def answered(
    feed: Feed,
    done: PublishedVersion,
    before: WorkflowSpec | None,
    tag: str,
    *,
    dry_run: bool = False,
    warnings: Sequence[str] = (),
) -> Response:
    """Return the answer to publishing, and tell those that look on."""
    version, is_new = done.version, done.created and not dry_run
    if is_new:
        feed.poll_soon()

    def made() -> PublishOut:
        earlier = {} if before is None else before.canonical()
        changes = diff(earlier, version.spec.canonical()) if done.created else []
        return PublishOut.of_record(
            version,
            created=done.created,
            dry_run=dry_run,
            warnings=list(warnings),
            diff=[ChangeOut.model_validate(change) for change in changes],
        )

    found = await answer(made, len(version.spec.tasks), 201 if is_new else 200)
    if not dry_run:
        found.headers["ETag"] = tag
    return found
