"""The resources that a task names, as its payload holds them.

A task gets the versions that were there when its run started, or when a request last let the run go
on: who repairs a file and recovers the run gets the repaired one, and nothing changes under a run
that goes on by itself. What tasks of the run itself have made since counts for those behind them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from shoal.core.access.grants import no_such_file
from shoal.core.definition.resources import ResourceLocator, is_shared
from shoal.core.errors import ShoalError, shortened
from shoal.core.hints import Hints
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.scope import Levels, SecretUnusable, TaskScope
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
    same: it waits until a user repairs it and recovers the run."""


class BadResourceName(UnusableResource):
    """What a task names is not a resource."""

    def __init__(self, field: str, problem: object) -> None:
        super().__init__(f"{field}: {problem}; `shoal resource list` shows what there is")


class UnknownResource(UnusableResource):
    """A task names a resource that its project does not have, or did not have yet."""

    def __init__(
        self, wanted: "WantedResource", project: str, at: datetime, known: Iterable[str] = ()
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


class NotSharedResource(UnusableResource):
    """A task names a resource of another project that is not there, or is not shared with it."""

    def __init__(self, wanted: "WantedResource", home: str, project: str) -> None:
        self.reference = wanted.reference
        super().__init__(f"{wanted.field}: {no_such_file(home, wanted.reference, project)}")


class TooManyResources(UnusableResource):
    """A task names too many files."""

    def __init__(self, field: str) -> None:
        super().__init__(
            f"{field}: the task names more than {MOST_FILES} files; pack them into an archive"
        )


@dataclass(frozen=True)
class WantedResource:
    """A resource that one field of a task names."""

    field: str
    reference: ResourceLocator


def wanted_resources(run: Run, attempt: Attempt, own: Levels) -> list[WantedResource]:
    """Return the resources that a task names; most name none.

    Raises InvalidMacro and BadResourceName.
    """
    spec = run.plan.tasks[attempt.task]
    marked = fields_marked(load_task_type(spec.type).Params, ResourceName)
    texts = [(f"params.{name}", spec.params.get(name)) for name in sorted(marked)]
    texts += [(f"resources[{index}]", text) for index, text in enumerate(spec.resources)]
    found = []
    scope: TaskScope | None = None
    for field, text in texts:
        if not isinstance(text, str) or not text:
            continue
        scope = scope or TaskScope(run, attempt, _refuse_secret, own)
        rendered = scope.render(text)
        try:
            found.append(WantedResource(field, ResourceLocator.parse(rendered)))
        except ValueError as error:
            raise BadResourceName(field, shortened(str(error), _LONGEST_NAME)) from None
    return found


def _refuse_secret(name: str) -> NoReturn:
    raise SecretUnusable("", 0, f"the secret {name} cannot be the name of a resource")


async def resources_of(
    uow: UnitOfWork, run: Run, wanted: Collection[WantedResource]
) -> list[pb.Resource]:
    """Return the versions that a task gets, by path.

    Of another project as far as that one shares them now. Raises UnknownResource,
    NotSharedResource, BadResourceName, TooManyResources, UnreadableRow.
    """
    project = run.plan.spec.project
    at = await uow.resources.last_restart(run.id) or run.created_at
    own = await _made(uow, run, at)
    by_home: defaultdict[str, list[WantedResource]] = defaultdict(list)
    for one in wanted:
        by_home[one.reference.project or project].append(one)
    others = by_home.keys() - {project}
    shared = await uow.resource_grants.shared(others, project) if others else {}
    found: dict[str, StoredResource] = {}
    for home, named in by_home.items():
        allowed = [
            one
            for one in named
            if home == project or is_shared(shared.get(home, ()), one.reference)
        ]
        files = await _files(uow, home, allowed, at, own if home == project else {})
        for one in named:
            if not files.get(one):
                if home != project:
                    raise NotSharedResource(one, home, project)
                raise UnknownResource(one, project, at, await uow.resources.names(project))
            for file in files[one]:
                before = found.setdefault(file.path, file)
                if (before.project, before.version) != (file.project, file.version):
                    raise BadResourceName(one.field, _twice(before, file))
            if len(found) > MOST_FILES:
                raise TooManyResources(one.field)
    return [_message(found[path]) for path in sorted(found)]


def _twice(one: StoredResource, other: StoredResource) -> str:
    if one.project != other.project:
        return f"the task names {one.path} of the projects {one.project} and {other.project}"
    return f"the task names {one.path} as @{one.version} and @{other.version}"


async def _files(
    uow: UnitOfWork,
    home: str,
    wanted: Collection[WantedResource],
    at: datetime,
    own: Mapping[str, StoredResource],
) -> dict[WantedResource, list[StoredResource]]:
    """Return what a project has of each; ``own``: what the run itself has made since, by path."""
    references = [one.reference for one in wanted if not one.reference.is_folder]
    paths = {one.path for one in references if one.version is None}
    pins = {(one.path, one.version) for one in references if one.version is not None}
    newest = {row.path: row for row in await uow.resources.files_at(home, paths, at)} | {**own}
    pinned = {(row.path, row.version): row for row in await uow.resources.pinned(home, pins)}
    found = {}
    for one in wanted:
        path, version = one.reference.path, one.reference.version
        if one.reference.is_folder:
            below = await uow.resources.folder_at(home, path, at, MOST_FILES + 1)
            made = {name: row for name, row in own.items() if name.startswith(f"{path}/")}
            found[one] = list(({row.path: row for row in below} | made).values())
        else:
            file = newest.get(path) if version is None else pinned.get((path, version))
            found[one] = [] if file is None else [file]
    return found


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
