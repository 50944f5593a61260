"""The resources that a task names, as its payload holds them.

A task gets the versions that were there when its run started, or when somebody last let the run go
on: who repairs a file and recovers the run gets the repaired one, and nothing changes under a run
that goes on by itself. What tasks of the run itself have made since counts for those behind them.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from shoal.core.definition.resources import Reference
from shoal.core.errors import ShoalError, shortened
from shoal.core.hints import Hints
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.scope import Levels, Scope, SecretUnusable
from shoal.core.task_types import ResourceName, fields_marked
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.plugins import load_task_type
from shoal.sql import UnitOfWork
from shoal.sql.repositories.definitions.resources import StoredResource

MOST_FILES = 1_000  # of one task

_MOST_MADE = 5_000  # newest versions that a run has made; older ones count for it no more
_LONGEST_NAME = 210  # characters that are shown


class UnusableResource(ShoalError):
    """A task cannot get a resource it names. A retry would look at the same moment, and find the
    same: it waits for somebody who puts it right and recovers the run."""


class BadResourceName(UnusableResource):
    """What a task names is no resource."""

    def __init__(self, field: str, problem: object) -> None:
        super().__init__(f"{field}: {problem}; `shoal resource list` shows what there is")


class UnknownResource(UnusableResource):
    """A task names a resource that its project does not have, or did not have yet."""

    def __init__(
        self, wanted: "Wanted", project: str, at: datetime, known: Iterable[str] = ()
    ) -> None:
        self.project, self.reference = project, wanted.reference
        hint = Hints().of(wanted.reference.path, known)
        when = f"{at:%Y-%m-%d %H:%M:%S} UTC, when the run began or last went on"
        what = "no file below" if wanted.reference.is_folder else "no resource"
        super().__init__(
            f"{wanted.field}: project {project} had {what} {wanted.reference} at {when}{hint}; put "
            f"it there with `shoal resource put FILE {wanted.reference.path} --project {project}` "
            "and recover the run"
        )


class TooManyResources(UnusableResource):
    """A task names too many files."""

    def __init__(self, field: str) -> None:
        super().__init__(
            f"{field}: the task names more than {MOST_FILES} files; pack them into an archive"
        )


@dataclass(frozen=True)
class Wanted:
    """A resource that one field of a task names."""

    field: str
    reference: Reference


def wanted_resources(run: Run, attempt: Attempt, own: Levels) -> list[Wanted]:
    """Return the resources that a task names; most name none.

    Raises InvalidMacro and BadResourceName.
    """
    spec = run.plan.tasks[attempt.task]
    marked = fields_marked(load_task_type(spec.type).Params, ResourceName)
    texts = [(f"params.{name}", spec.params.get(name)) for name in sorted(marked)]
    texts += [(f"resources[{index}]", text) for index, text in enumerate(spec.resources)]
    found = []
    scope: Scope | None = None
    for field, text in texts:
        if not isinstance(text, str) or not text:
            continue
        scope = scope or Scope(run, attempt, _refuse_secret, own)
        rendered = scope.render(text)
        try:
            found.append(Wanted(field, Reference.parse(rendered)))
        except ValueError as error:
            raise BadResourceName(field, shortened(str(error), _LONGEST_NAME)) from None
    return found


def _refuse_secret(name: str) -> NoReturn:
    raise SecretUnusable("", 0, f"the secret {name} cannot be the name of a resource")


async def resources_of(uow: UnitOfWork, run: Run, wanted: Collection[Wanted]) -> list[pb.Resource]:
    """Return the versions that a task gets, by path. Raises UnknownResource, BadResourceName,
    TooManyResources, UnreadableRow."""
    project = run.plan.spec.project
    at = await uow.resources.last_restart(run.id) or run.created_at
    references = [one.reference for one in wanted if not one.reference.is_folder]
    paths = {one.path for one in references if one.version is None}
    pins = {(one.path, one.version) for one in references if one.version is not None}
    own = await _made(uow, run, at)
    newest = {row.path: row for row in await uow.resources.files_at(project, paths, at)} | own
    pinned = {(row.path, row.version): row for row in await uow.resources.pinned(project, pins)}
    found: dict[str, StoredResource] = {}
    for one in wanted:
        path, version = one.reference.path, one.reference.version
        if one.reference.is_folder:
            below = await uow.resources.folder_at(project, path, at, MOST_FILES + 1)
            made = {name: row for name, row in own.items() if name.startswith(f"{path}/")}
            files = list(({row.path: row for row in below} | made).values())
        else:
            file = newest.get(path) if version is None else pinned.get((path, version))
            files = [] if file is None else [file]
        if not files:
            raise UnknownResource(one, project, at, await uow.resources.names(project))
        for file in files:
            before = found.setdefault(file.path, file)
            if before.version != file.version:
                raise BadResourceName(
                    one.field,
                    f"the task names {file.path} as @{before.version} and @{file.version}",
                )
        if len(found) > MOST_FILES:
            raise TooManyResources(one.field)
    return [_message(found[path]) for path in sorted(found)]


async def _made(uow: UnitOfWork, run: Run, since: datetime) -> dict[str, StoredResource]:
    """Return by path what tasks of a run have made since that time; most make nothing."""
    if not run.plan.publishes:
        return {}
    found: dict[str, StoredResource] = {}
    for row in await uow.resources.made_by(run.id, since, _MOST_MADE):
        if row.project == run.plan.spec.project:
            found.setdefault(row.path, row)  # the newest comes first
    return found


def _message(row: StoredResource) -> pb.Resource:
    return pb.Resource(
        path=row.path, version=row.version, sha256=row.sha256, size=row.size, object=row.object
    )
