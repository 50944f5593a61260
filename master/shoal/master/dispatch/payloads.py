"""What a worker is to run: the task's params, the parameters it sees, its secrets.

Params are rendered with the parameters, except fields marked ``Verbatim``: those are programs in
another language, so parameter values are never pasted into them. Date expressions and
``${system.…}`` are rendered everywhere.

A task gets the secrets that its rendered texts use (``${secret.NAME}``), and those whose variable
``SHOAL_SECRET_NAME`` its programs name. Their values exist in the payload alone: nothing rendered
here is stored, logged or made an event.

Most tasks need nothing beside their run: their payloads cost no statement but one a second, which
reads the worker groups that are restricted to projects. Their texts are rendered in the event
loop, long ones in a thread (``side_thread``). What rendering may cost has a budget (``TaskScope``).
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

from shoal.core.data_sources.spec import StoredDataSource
from shoal.core.definition.model import TaskSpec, TimeoutAction
from shoal.core.macros.placeholders import SECRETS_PREFIX
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.scope import Levels, TaskScope, levels, undeclared
from shoal.core.task_types import Verbatim, fields_marked
from shoal.master.dispatch.environments import environment_of, wanted_environment
from shoal.master.dispatch.resources import WantedResource, resources_of, wanted_resources
from shoal.master.dispatch.secrets import ProjectSecrets, SecretUnreadable
from shoal.master.dispatch.side_thread import Patience, SideThread
from shoal.master.dispatch.sources import (
    SourceMaker,
    UnknownDataSource,
    WantedSource,
    is_shared_with,
    uses_secrets,
    wanted_sources,
)
from shoal.master.dispatch.worker_groups import WorkerGroups
from shoal.master.engine.publications import Publications, publications
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.plugins import load_task_type
from shoal.runtime.secret_stores.errors import (
    InvalidReference,
    SecretRefused,
    StoreGivenUp,
)
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.vault import Vault
from shoal.sql import Database, UnitOfWork

_Stored = Mapping[tuple[str, str], StoredDataSource]
_WORD = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*")
T = TypeVar("T")
_LONG_CHARACTERS = 32_000  # of all texts of a task
_LONG_DOLLARS = 1_000  # each may begin a placeholder
_VARIABLE = re.compile(r"\bSHOAL_SECRET_([A-Za-z_][A-Za-z0-9_]{0,99})\b")


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
        groups: WorkerGroups | None = None,
    ) -> None:
        self._database, self._vault = database, vault
        self._epoch_of, self._cluster = epoch_of, cluster
        self._publications, self._clock = publications, clock
        self._resolver = resolver
        self._groups = groups or WorkerGroups(database)
        self._side = SideThread()

    async def make(
        self, run: Run, attempt: Attempt, patience: Patience | None = None
    ) -> pb.Payload:
        """Return the payload of a stored attempt.

        ``patience``: how long its texts may wait for those of other tasks. Raises TextsWait after
        that; InvalidMacro, UnknownSecret, UnknownDataSource, UnknownResource, UnknownEnvironment,
        WorkerGroupNotAllowed and others that say why the task cannot be run; SqlError if the
        database gives no answer; VaultError, NotOwner. If a secret is kept in another store:
        SecretUnreadable, and StoreUnavailable while it is worth while to ask again.
        """
        spec, project = run.plan.tasks[attempt.task], run.plan.spec.project
        await self._groups.require(project, spec.worker_group)
        own = levels(run, attempt.task)
        is_long, patience = has_long_texts(spec, own), patience or Patience()

        async def rendered(work: Callable[[], T]) -> T:
            return await self._side.run(work, patience, begun=True) if is_long else work()

        def names() -> tuple[list[WantedSource], list[WantedResource], bool]:
            return (
                wanted_sources(run, attempt, own),
                wanted_resources(run, attempt, own),
                may_use_secrets(spec, own),
            )

        wanted, named, needs_secrets = await self._side.run(names, patience) if is_long else names()
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

            await self._resolve(attempt, secrets.values(), lambda: rendered(rehearsed))
            sources = await rendered(made_sources)
        publish: list[pb.Publication] = []
        if spec.publish:
            files = await rendered(lambda: publications(run, attempt, own))
            publish = await self._publications.note(
                self._database, run, attempt, files, self._clock()
            )
        made = await rendered(
            lambda: payload(run, attempt, 0, secrets.get(project), own, sources, self._cluster)
        )
        # After the last pause: it may have changed hands.
        made.epoch = self._epoch_of(run.partition)
        made.resources.extend(resources)
        if environment is not None:
            made.environment.CopyFrom(environment)
        if publish:
            made.publish.extend(publish)
            made.largest_publication = self._publications.largest
        return made

    async def _resolve(
        self,
        attempt: Attempt,
        secrets: Collection[ProjectSecrets],
        rehearse: Callable[[], Awaitable[None]],
    ) -> None:
        """Read what the attempt needs from other stores: what is asked for in a rehearsal.

        That goes on until nothing more is asked for: what is rendered with a value that is not
        there yet may be wrong, and is thrown away.
        """
        if not any(one.has_references for one in secrets):
            return
        while True:
            with suppress(Exception):  # it comes again when the payload is made
                await rehearse()
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


async def _stored(uow: UnitOfWork, project: str, wanted: Collection[WantedSource]) -> _Stored:
    """Return what is stored of all that are wanted. Raises UnknownDataSource, UnreadableRow."""
    rows = await uow.data_sources.named({each.key for each in wanted})
    found = {(one.project, one.name): one for one in rows if is_shared_with(one, project)}
    for each in wanted:
        if each.key not in found:
            known = await uow.data_sources.names(project) if each.home == project else ()
            raise UnknownDataSource(each, project, known)
    return found


def may_use_secrets(spec: TaskSpec, own: Levels) -> bool:
    """Say whether a task that sees ``own`` may refer to a secret; most do not."""
    if any(_VARIABLE.search(text) for text in _programs(spec)):
        return True
    values = (value for level in own for value in level.values())
    return any(SECRETS_PREFIX in text for text in (*_texts(spec.params), *values))


def has_long_texts(spec: TaskSpec, own: Levels) -> bool:
    """Say whether rendering the texts of a task that sees ``own`` may take long."""
    characters = dollars = 0
    for level in own:
        for value in level.values():
            characters += len(value)
            dollars += value.count("$")
    if characters > _LONG_CHARACTERS or dollars > _LONG_DOLLARS:
        return True
    for text in _texts(spec.params):
        characters += len(text)
        dollars += text.count("$")
    return characters > _LONG_CHARACTERS or dollars > _LONG_DOLLARS


def payload(
    run: Run,
    attempt: Attempt,
    epoch: int,
    secrets: ProjectSecrets | None = None,
    own: Levels | None = None,
    sources: Mapping[str, pb.DataSource] | None = None,
    cluster: str = "",
) -> pb.Payload:
    """Return the payload of a stored attempt. ``own``: see Scope. ``cluster``: the uid.

    Raises InvalidMacro if it cannot be rendered, UnknownSecret, VaultError.
    """
    assert attempt.id is not None
    spec = run.plan.tasks[attempt.task]
    own = levels(run, attempt.task) if own is None else own
    scope = TaskScope(run, attempt, secrets, own)
    params = scope.params(load_task_type(spec.type).Params)
    parameters = scope.parameters()
    if secrets is not None:
        for program in _programs(spec):
            for name in _VARIABLE.findall(program):
                secrets(name)
    warns_only = spec.timeout_action is TimeoutAction.WARN  # which the master sees to
    return pb.Payload(
        workflow_instance_id=run.id,
        task_instance_id=attempt.id,
        partition=run.partition,
        project=run.plan.spec.project,
        workflow=run.plan.spec.name,
        version=run.version,
        task=attempt.task,
        type=spec.type,
        attempt=attempt.number,
        params_json=json.dumps(params, ensure_ascii=False),
        parameters=parameters,
        timeout_s=0.0 if warns_only else spec.timeout or 0.0,
        logical_time=run.logical_time.timestamp(),
        epoch=epoch,
        timezone=run.timezone,
        secrets=secrets.used if secrets is not None else {},
        queued_at=attempt.queued_at.timestamp() if attempt.queued_at else 0.0,
        undeclared=_unnamed(spec, own),
        outputs_from_log=spec.outputs_from_log,
        tag=tag(run, attempt.task, cluster),
        cluster=cluster,
        data_sources=sources,
        looks=attempt.looks,
        waiting_since=attempt.waiting_since.timestamp() if attempt.waiting_since else 0.0,
    )


def tag(run: Run, task: str, cluster: str = "") -> str:
    """Return what marks the work of all attempts of a task in one run; see TaskContext.

    ``cluster``: a name that no other cluster has.
    """
    digest = hashlib.sha256(json.dumps([cluster, run.id, task]).encode()).hexdigest()
    return f"shoal-{digest[:24]}"


def _unnamed(spec: TaskSpec, own: Levels) -> list[str]:
    """Return the parameters that no definition declares and no program of the task names.

    Variables of such names would let a task upstream, or text that it passes on, steer whatever
    programs this one starts: ``GIT_SSH_COMMAND``, ``http_proxy``, ``OPENSSL_CONF`` …
    """
    names = undeclared(own)
    for program in _programs(spec) if names else ():
        names -= set(_WORD.findall(program))
    return sorted(names)


def _programs(spec: TaskSpec) -> Iterator[str]:
    for name in fields_marked(load_task_type(spec.type).Params, Verbatim):
        yield from _texts(spec.params.get(name))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
