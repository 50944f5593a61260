"""Files that a task hands over to the resources of its project.

Their uploads are noted before the payload leaves, with the names of the objects that the worker
writes, so none is ever forgotten. They become versions in the transaction that stores the success
of the attempt: with it or not at all. What is left of attempts that ended otherwise is swept away
with the uploads of people (services/resources.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from shoal.core.definition.resources import path_problem
from shoal.core.errors import ShoalError, shortened
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.scope import Levels, Scope, SecretUnusable
from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.runtime.storage import Limits, Storage
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import ResourceRefused, UploadExpired

_LONGEST_NAME = 210  # characters that are shown


class BadPublication(ShoalError):
    """What a task hands over, or as what, renders to nothing usable."""

    def __init__(self, file: str, problem: object) -> None:
        super().__init__(f"publish[{shortened(file, _LONGEST_NAME)}]: {problem}")


class NotPublished(ShoalError):
    """The files of an attempt cannot become resources. ``permanent``: nor would another's."""

    def __init__(self, why: object, *, permanent: bool) -> None:
        self.permanent = permanent
        super().__init__(f"publish: {why}")


@dataclass(frozen=True)
class Published:
    """A file that a worker has written into the storage. ``size`` is in bytes."""

    path: str
    sha256: str
    size: int


class Publications:
    """Notes and completes the uploads of attempts, for one master.

    ``cluster``: a name that no other cluster has.
    """

    def __init__(self, cluster: str, limits: Limits) -> None:
        self._cluster, self._limits = cluster, limits

    async def note(
        self, database: Database, run: Run, attempt: Attempt, own: Levels, at: datetime
    ) -> list[pb.Publication]:
        """Return what the payload of an attempt says about its files; their uploads are noted.

        Doing it again is harmless. Raises InvalidMacro, BadPublication, SqlError.
        """
        named = publications(run, attempt, own)
        async with database.unit_of_work() as uow:
            former = self._former_names(run, attempt)
            # The worker of an attempt that began under an earlier version writes those.
            is_former = await uow.resources.reserved(run.plan.spec.project, former, run.id)
            names = former if is_former else self._names(run, attempt)
            found = [
                pb.Publication(file=file, path=path, object=name)
                for (file, path), name in zip(named, names, strict=True)
            ]
            objects = {one.object: one.path for one in found}
            await uow.resources.reserve(run.plan.spec.project, objects, run.id, at)
            failpoints.hit("publish.before_reserve")
            await uow.commit()
        failpoints.hit("publish.after_reserve")
        return found

    async def store(
        self,
        uow: UnitOfWork,
        run: Run,
        attempt: Attempt,
        published: Sequence[Published],
        at: datetime,
    ) -> None:
        """Make the files of an attempt that has succeeded versions. Raises NotPublished, SqlError.

        What is as the newest version is makes no new one.
        """
        project = run.plan.spec.project
        names = [*self._names(run, attempt), *self._former_names(run, attempt)]
        uploads = await uow.resources.reserved(project, names, run.id)
        wanted = len(run.plan.tasks[attempt.task].publish)
        written = {one.path: one for one in published}
        if len(uploads) != wanted:
            raise NotPublished("its uploads are not known any more", permanent=False)
        if written.keys() != {upload.path for upload in uploads}:
            text = "the worker has not handed its files over; it may be of an earlier version"
            raise NotPublished(text, permanent=False)
        try:
            for upload in uploads:
                one = written[upload.path]
                if one.size > self._limits.file:
                    raise NotPublished(f"{one.path} has too many bytes", permanent=True)
                await uow.resources.complete(
                    upload, one.sha256, one.size, at, most=self._limits.project
                )
        except ResourceRefused as error:
            permanent = not isinstance(error, UploadExpired)
            raise NotPublished(error, permanent=permanent) from error

    @property
    def largest(self) -> int:
        """Bytes that one file may have."""
        return self._limits.file

    def _names(self, run: Run, attempt: Attempt) -> list[str]:
        """Return the names of the objects of an attempt, in the order of its files' names."""
        assert attempt.id is not None
        project, count = run.plan.spec.project, len(run.plan.tasks[attempt.task].publish)
        return [
            Storage.name_for(project, self._cluster, attempt.id, number) for number in range(count)
        ]

    def _former_names(self, run: Run, attempt: Attempt) -> list[str]:
        """Return the same as earlier versions named them."""
        assert attempt.id is not None
        project, count = run.plan.spec.project, len(run.plan.tasks[attempt.task].publish)
        return [
            Storage.former_name_for(project, self._cluster, attempt.id, number)
            for number in range(count)
        ]


def publications(run: Run, attempt: Attempt, own: Levels) -> list[tuple[str, str]]:
    """Return the files that an attempt hands over, and the resources that they become.

    Raises InvalidMacro, BadPublication.
    """
    scope = Scope(run, attempt, _refuse_secret, own)
    found: dict[str, str] = {}
    for file, path in sorted(run.plan.tasks[attempt.task].publish.items()):
        rendered = scope.render(file), scope.render(path)
        for text in rendered:
            if problem := path_problem(text):
                raise BadPublication(file, problem)
        if rendered[1] in found.values():
            raise BadPublication(file, f"another file becomes {rendered[1]}, too")
        if rendered[0] in found:
            raise BadPublication(file, f"the file {rendered[0]} is named twice")
        found[rendered[0]] = rendered[1]
    return list(found.items())


def _refuse_secret(name: str) -> NoReturn:
    raise SecretUnusable("", 0, f"the secret {name} cannot be the name of a resource")
