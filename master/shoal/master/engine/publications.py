"""Files that a task hands over to the resources of its project.

Their uploads are noted before the payload leaves, with the names of the objects that the worker
writes, so none is ever forgotten. They become versions in the transaction that stores the success
of the attempt: with it or not at all. Only that transaction shows whether they can. If not, nothing
of its batch is stored (``PublicationRefused``), and it is decided again with the failure of that
attempt in place of its success. Files of attempts that ended otherwise are removed with abandoned
uploads (services/upkeep/resources.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NoReturn

from shoal.core.definition.resources import path_problem
from shoal.core.errors import ShoalError, shortened
from shoal.core.runs.events import TaskEnded
from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.scope import Levels, SecretUnusable, TaskScope
from shoal.core.runs.states import TaskSignal, TaskState
from shoal.master.engine.batch import PendingEvent, PublishedFile
from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.runtime.storage import Storage, StorageLimits
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


class PublicationRefused(Exception):
    """What an attempt hands over cannot become resources."""

    def __init__(self, item: PendingEvent, why: NotPublished) -> None:
        self._item, self._why = item, why
        super().__init__(str(why))

    def become_a_failure(self) -> None:
        """Let the event of the attempt be that it has failed."""
        event = self._item.event
        assert isinstance(event, TaskEnded)
        self._item.event = replace(
            event,
            signal=TaskSignal.FAIL,
            reason=str(self._why),
            outputs={},
            permanent=self._why.permanent,
        )


class Publications:
    """Notes and completes the uploads of attempts, for one master.

    ``cluster``: a name that no other cluster has.
    """

    def __init__(self, cluster: str, limits: StorageLimits) -> None:
        self._cluster, self._limits = cluster, limits

    async def note(
        self,
        database: Database,
        run: Run,
        attempt: Attempt,
        files: Sequence[tuple[str, str]],
        at: datetime,
    ) -> list[pb.Publication]:
        """Return what the payload of an attempt says about its files; their uploads are noted.

        ``files``: its ``publications``. Doing it again is harmless. Raises SqlError.
        """
        names = self._names(run, attempt)
        found = [
            pb.Publication(file=file, path=path, object=name)
            for (file, path), name in zip(files, names, strict=True)
        ]
        async with database.unit_of_work() as uow:
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
        published: Sequence[PublishedFile],
        at: datetime,
    ) -> None:
        """Make the files of an attempt that has succeeded versions. Raises NotPublished, SqlError.

        What is as the newest version is makes no new one.
        """
        project = run.plan.spec.project
        uploads = await uow.resources.reserved(project, self._names(run, attempt), run.id)
        wanted = len(run.plan.tasks[attempt.task].publish)
        written = {one.path: one for one in published}
        if len(uploads) != wanted:
            raise NotPublished("its uploads are no longer known", permanent=False)
        if written.keys() != {upload.path for upload in uploads}:
            raise NotPublished("the worker has not handed its files over", permanent=False)
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


def publications(run: Run, attempt: Attempt, own: Levels) -> list[tuple[str, str]]:
    """Return the files that an attempt hands over, and the resources that they become.

    Raises InvalidMacro, BadPublication.
    """
    scope = TaskScope(run, attempt, _refuse_secret, own)
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


def note_success(item: PendingEvent, run: Run, decision: Decision) -> None:
    """Note whether an attempt has succeeded by an event. ``decision`` is applied to ``run``.

    A report that is repeated, or comes from a worker that was given up, changes nothing.
    """
    event = item.event
    item.has_succeeded = False
    if isinstance(event, TaskEnded) and event.signal is TaskSignal.SUCCEED:
        attempt = run.attempt_by_id(event.task_instance_id)
        item.has_succeeded = (
            attempt is not None
            and attempt.state is TaskState.SUCCEEDED
            and (attempt.task, attempt.number) in decision.moved
        )


async def publish(
    uow: UnitOfWork,
    publications: Publications,
    items: Sequence[PendingEvent],
    runs: Mapping[int, Run],
    at: datetime,
) -> bool:
    """Make the files of attempts that have succeeded resources; return whether there are any.

    Raises PublicationRefused, SqlError.
    """
    found = False
    for item in items:
        if not item.has_succeeded:
            continue
        assert isinstance(item.event, TaskEnded)
        run = runs[item.instance_id]
        attempt = run.attempt_by_id(item.event.task_instance_id)
        if attempt is None or not run.plan.tasks[attempt.task].publish:
            continue
        found = True
        try:
            await publications.store(uow, run, attempt, item.published, at)
        except NotPublished as error:
            raise PublicationRefused(item, error) from error
    if found:
        failpoints.hit("publish.before_commit")
    return found
