"""Real masters in the test's own loop, with a real ZooKeeper and a real database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.coordination import NoNode, ZkSession, notify, partition_of
from shoal.coordination.cluster import layout
from shoal.core.access.grants import Grant
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import Command, CommandState, CommandType, NewCommand
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState
from shoal.master.main import serve
from shoal.master.settings import MasterSettings, UpkeepTimes
from shoal.proto.channels import Channels
from shoal.proto.tls import TlsFiles, create_identity
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database
from shoal.sql.driver.sqlite import pool
from tests.integration.coordination.conftest import connect
from tests.integration.master.engine.engine_harness import Harness, Unsteady
from tests.integration.master.manual_worker import HandWorker
from tests.support.clock import utc_now
from tests.support.database.databases import migrated_url
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S

PARTITIONS = 8


class Bench:
    """A cluster whose masters come and go as a test likes."""

    def __init__(self, stack: AsyncExitStack, cluster: ClusterSettings, database: Database) -> None:
        self._stack = stack
        self.cluster = cluster
        self.database = database
        self.session: ZkSession
        self.channels: Channels

    @asynccontextmanager
    async def master(
        self,
        cluster: ClusterSettings | None = None,
        upkeep: UpkeepTimes | None = None,
        **settings: Any,
    ) -> AsyncIterator[asyncio.Task[None]]:
        """A running master; it leaves in order at the end unless the test has cancelled it.

        ``cluster``: how it sees the cluster, if not as all others do.
        """
        stop = asyncio.Event()
        options = {
            "sweep_interval_s": 0.5,
            "scan_interval_s": 0.5,
            "kill_retry_s": 0.3,
            "initial_rebalance_delay_s": 0.0,
        } | settings
        task = asyncio.create_task(
            serve(MasterSettings(**options), cluster or self.cluster, stop, upkeep)
        )
        try:
            yield task
        finally:
            stop.set()
            await asyncio.gather(task, return_exceptions=True)

    async def worker(self, name: str, session: ZkSession | None = None) -> HandWorker:
        """A worker done by hand; give it a session of its own to let it die."""
        return HandWorker(session or self.session, self.channels, name)

    async def publish(self, tasks: dict[str, dict[str, Any]], **fields: Any) -> int:
        """Publish workflow "w" of SHELL tasks; return its id."""
        spec = WorkflowSpec.model_validate(
            {
                "name": "w",
                "tasks": [
                    {"name": n, "type": "SHELL", "params": {"script": "true"}, **t}
                    for n, t in tasks.items()
                ],
                **fields,
            }
        )
        async with self.database.unit_of_work() as uow:
            published = await uow.workflows.publish(spec, datetime.now(UTC))
            await uow.commit()
        return published.version.workflow_id

    async def command(
        self,
        kind: CommandType,
        workflow_id: int,
        key: str,
        instance: Instance | None = None,
        **fields: Any,
    ) -> Command:
        """Add a command, notify, and return it once it has an outcome."""
        partition = instance.partition if instance else partition_of(key, PARTITIONS)
        new = NewCommand(
            kind,
            partition,
            key,
            workflow_id,
            instance_id=instance.id if instance else None,
            **fields,
        )
        async with self.database.unit_of_work() as uow:
            command, _ = await uow.commands.add(new, datetime.now(UTC))
            await uow.commit()
        await notify(self.session, [partition])
        async with asyncio.timeout(DEADLINE_S):
            while command.state is CommandState.PENDING:
                await asyncio.sleep(0.01)
                async with self.database.unit_of_work(read_only=True) as uow:
                    command = await uow.commands.get(command.id)
        return command

    async def start(self, workflow_id: int, key: str = "k", **fields: Any) -> Instance:
        """Start the workflow and return the new instance."""
        command = await self.command(CommandType.START, workflow_id, key, **fields)
        assert command.result_instance_id is not None, command.reason
        return await self.instance(command.result_instance_id)

    async def instance(self, instance_id: int) -> Instance:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.instances.get(instance_id)

    async def tasks(self, instance_id: int, *, all_attempts: bool = False) -> list[TaskInstance]:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.tasks.of_instance(instance_id, all_attempts=all_attempts)

    async def ended(self, instance_id: int) -> WorkflowState:
        """Wait for an instance's end."""
        async with asyncio.timeout(DEADLINE_S):
            while (state := (await self.instance(instance_id)).state) not in FINISHED_WORKFLOW:
                await asyncio.sleep(0.01)
        return state

    async def owners(self) -> set[str | None]:
        """Return the owners of the partitions at this moment; None: one has no owner."""
        found: set[str | None] = set()
        for number in range(PARTITIONS):
            try:
                found.add((await self.session.get(layout.owner(number))).data.decode())
            except NoNode:
                found.add(None)
        return found

    async def shared_by_two(self) -> None:
        """Wait until two masters own all partitions."""
        async with asyncio.timeout(DEADLINE_S):
            while len(found := await self.owners()) != 2 or None in found:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def make_bench(
    request: pytest.FixtureRequest, kind: str, zk_chroot: str, folder: Path
) -> AsyncIterator[Bench]:
    """Database, identity and a ZooKeeper tree; no master yet."""
    create_identity(folder / "tls")
    cluster = ClusterSettings(
        data=folder,
        zookeeper=zk_chroot,
        partitions=PARTITIONS,
        session_timeout_s=SERVICE_SESSION_S,
        database_url=migrated_url(request, kind),
    )
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(cluster.database))
        bench = Bench(stack, cluster, database)
        bench.session = await stack.enter_async_context(connect(zk_chroot, name="test"))
        bench.channels = await stack.enter_async_context(Channels(TlsFiles.of(cluster)))
        yield bench


@pytest.fixture(params=["sqlite", "postgresql"])
async def bench(
    request: pytest.FixtureRequest, zk_chroot: str, tmp_path: Path
) -> AsyncIterator[Bench]:
    async with make_bench(request, request.param, zk_chroot, tmp_path) as bench:
        yield bench


@pytest.fixture(params=["sqlite", "postgresql"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    """An engine with partition 0, for each kind of database; some subjects have harnesses of
    their own."""
    async with Unsteady(migrated_url(request, request.param)) as database:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(1)
            await uow.commit()
        yield Harness(database)


@pytest.fixture
def each_query_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that count statements: one of SQLite's that takes long is stopped and repeated."""
    monkeypatch.setattr(pool, "SHORT_S", 60.0)


async def give(database: Database, giver: str, taker: str, what: Grant) -> None:
    """Let the tasks of a project do something with another one."""
    async with database.unit_of_work() as uow:
        home = await uow.projects.ensure(giver, utc_now())
        await uow.grants.put(home.id, taker, what, utc_now())
        await uow.commit()


DIAMOND = {
    "a": {},
    "b": {"depends_on": ["a"]},
    "c": {"depends_on": ["a"]},
    "d": {"depends_on": ["b", "c"]},
}


async def all_succeed(bench: Bench, instances: list[Instance]) -> None:
    """Wait for the end of all; none may have needed a second attempt."""
    for instance in instances:
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        attempts = await bench.tasks(instance.id, all_attempts=True)
        assert [task.attempt for task in attempts] == [1, 1, 1, 1]
