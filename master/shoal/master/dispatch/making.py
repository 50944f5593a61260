"""Makes payloads: reads what a task needs beside its run, and puts it all together.

Most tasks need nothing else, and cost no statement but one a second: which worker groups are kept
for which projects.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime

from shoal.core.data_sources.stored import StoredDataSource
from shoal.core.errors import ShoalError
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.scope import levels
from shoal.master.dispatch.environments import environment_of, wanted_environment
from shoal.master.dispatch.payloads import ProjectSecrets, may_use_secrets, payload
from shoal.master.dispatch.publications import Publications
from shoal.master.dispatch.resources import resources_of, wanted_resources
from shoal.master.dispatch.sources import (
    SourceMaker,
    UnknownDataSource,
    Wanted,
    is_shared_with,
    uses_secrets,
    wanted_sources,
)
from shoal.master.dispatch.worker_groups import WorkerGroups
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.secret_stores.errors import (
    InvalidReference,
    SecretRefused,
    SecretStoreError,
    StoreGivenUp,
)
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.vault import Vault
from shoal.sql import Database, UnitOfWork

_Stored = Mapping[tuple[str, str], StoredDataSource]


class SecretUnreadable(ShoalError):
    """A secret that a task uses is kept in another store, which does not give it.

    ``permanent``: it would not do so the next time either.
    """

    def __init__(self, project: str, name: str, error: SecretStoreError) -> None:
        self.project, self.name = project, name
        self.permanent = isinstance(error, InvalidReference | SecretRefused)
        joint = " " if isinstance(error, InvalidReference) else ": "
        super().__init__(
            f"the secret {name} of project {project}{joint}{error}; "
            f"`shoal secret test {name} --project {project}` tries it"
        )


class PayloadMaker:
    """Makes the payloads of one master.

    ``epoch_of`` returns the epoch of a partition, or raises NotOwner. ``cluster``: its name that no
    other cluster has. ``resolver`` reads secrets that are kept in other stores.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        epoch_of: Callable[[int], int],
        cluster: str,
        publications: Publications,
        clock: Callable[[], datetime],
        resolver: Resolver,
    ) -> None:
        self._database, self._vault = database, vault
        self._epoch_of, self._cluster = epoch_of, cluster
        self._publications, self._clock = publications, clock
        self._resolver = resolver
        self._groups = WorkerGroups(database)

    async def make(self, run: Run, attempt: Attempt) -> pb.Payload:
        """Return the payload of a stored attempt.

        Raises InvalidMacro, UnknownSecret, UnknownDataSource, UnknownResource, UnknownEnvironment,
        WorkerGroupNotAllowed and others that say why the task cannot be run; SqlError if the
        database gives no answer; VaultError, NotOwner. If a secret is kept in another store:
        SecretUnreadable, and StoreUnavailable while it is worth while to ask again.
        """
        spec, project = run.plan.tasks[attempt.task], run.plan.spec.project
        await self._groups.require(project, spec.worker_group)
        own = levels(run, attempt.task)
        wanted = wanted_sources(run, attempt, own)
        named = wanted_resources(run, attempt, own)
        needs_secrets = may_use_secrets(spec, own)
        around = wanted_environment(run, attempt)
        secrets: dict[str, ProjectSecrets] = {}
        sources: dict[str, pb.DataSource] = {}
        resources: list[pb.Resource] = []
        environment: pb.Environment | None = None
        if wanted or named or needs_secrets or around:
            async with self._database.unit_of_work(read_only=True) as uow:
                stored = await _stored(uow, project, wanted) if wanted else {}
                homes = {one.project for one in stored.values() if uses_secrets(one)}
                for home in sorted(homes | ({project} if needs_secrets else set())):
                    secrets[home] = await self._secrets(uow, home)
                resources = await resources_of(uow, run, named) if named else []
                if around:
                    environment = await environment_of(uow, run, attempt, around)

            def made_sources() -> dict[str, pb.DataSource]:
                maker = SourceMaker(run, attempt, own, self._vault, secrets)
                return maker.make(wanted, stored)

            def rehearsed() -> None:
                made_sources()
                payload(run, attempt, 0, secrets.get(project), own)

            await self._resolve(attempt, secrets.values(), rehearsed)
            sources = made_sources()
        publish: list[pb.Publication] = []
        if spec.publish:
            publish = await self._publications.note(
                self._database, run, attempt, own, self._clock()
            )
        epoch = self._epoch_of(run.partition)  # after the last pause: it may have changed hands
        made = payload(run, attempt, epoch, secrets.get(project), own, sources, self._cluster)
        made.resources.extend(resources)
        if environment is not None:
            made.environment.CopyFrom(environment)
        if publish:
            made.publish.extend(publish)
            made.largest_publication = self._publications.largest
        return made

    async def _resolve(
        self, attempt: Attempt, secrets: Collection[ProjectSecrets], rehearsed: Callable[[], None]
    ) -> None:
        """Read what the attempt needs from other stores: what is asked for in a rehearsal.

        That goes on until nothing more is asked for: what is rendered with a value that is not
        there yet may be wrong, and is thrown away.
        """
        if not any(one.has_references for one in secrets):
            return
        while True:
            with suppress(Exception):  # it comes again when the payload is made
                rehearsed()
            missing = [(one, name) for one in secrets for name in one.missing]
            if not missing:
                return
            found = await asyncio.gather(
                *(self._read(attempt, one, name) for one, name in missing), return_exceptions=True
            )
            # A last word counts more than that another store may be asked again.
            if errors := [one for one in found if isinstance(one, BaseException)]:
                raise min(errors, key=lambda one: getattr(one, "retriable", False))

    async def _read(self, attempt: Attempt, secrets: ProjectSecrets, name: str) -> None:
        assert attempt.id is not None
        project = secrets.project
        try:
            value = await self._resolver.value(project, secrets.missing[name], attempt.id)
        except (InvalidReference, SecretRefused, StoreGivenUp) as error:
            raise SecretUnreadable(project, name, error) from error
        secrets.resolved(name, value)

    async def _secrets(self, uow: UnitOfWork, project: str) -> ProjectSecrets:
        return ProjectSecrets(self._vault, project, await uow.secrets.stored(project))


async def _stored(uow: UnitOfWork, project: str, wanted: Collection[Wanted]) -> _Stored:
    """Return what is stored of all that are wanted. Raises UnknownDataSource, UnreadableRow."""
    rows = await uow.data_sources.named({each.key for each in wanted})
    found = {(one.project, one.name): one for one in rows if is_shared_with(one, project)}
    for each in wanted:
        if each.key not in found:
            known = await uow.data_sources.names(project) if each.home == project else ()
            raise UnknownDataSource(each, project, known)
    return found
