"""A master and a worker in this process's loop, with a real ZooKeeper and a SQLite file."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from bench.counts.counting import Counts, uncounted
from bench.counts.loop import AGENT, ALERT_SERVER, MASTER, start_role
from shoal.alert.main import serve as serve_alerts
from shoal.alert.settings import AlertSettings
from shoal.coordination import Members, ZkSession, notify, partition_of
from shoal.coordination.cluster import layout
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.states import WorkflowState
from shoal.master.main import serve
from shoal.master.settings import MasterSettings
from shoal.proto.tls import create_identity
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database
from shoal.worker.main import run_worker
from shoal.worker.settings import WorkerSettings

SLOTS = 8
_LOOK_S = 0.05
# What masters do now and then costs by the minute, not by the task: little of it is in the counts.
_MASTER = MasterSettings(initial_rebalance_delay_s=0.0, scan_interval_s=60.0, sweep_interval_s=60.0)


class OneProcess:
    """Runs workflows on the roles; its own requests are not counted."""

    def __init__(self, cluster: ClusterSettings, database: Database, session: ZkSession) -> None:
        self._cluster, self._database, self._session = cluster, database, session
        self._runs = 0
        self._instances: Counter[str] = Counter()  # of each workflow, so far

    async def run(self, spec: WorkflowSpec, instances: int, counts: Counts) -> dict[str, float]:
        """Run a workflow so many times, all at once; return what each task has cost.

        Raises SystemExit if an instance fails.
        """
        self._runs += 1
        self._instances[spec.name] += instances
        with uncounted():
            before = counts.now()
            await self._start(spec, instances)
            while True:
                await asyncio.sleep(_LOOK_S)
                if await self._ended(spec.name):
                    break
            after = counts.now()
        tasks = instances * len(spec.tasks)
        return {name: (number - before[name]) / tasks for name, number in after.items()}

    async def _start(self, spec: WorkflowSpec, instances: int) -> None:
        now = datetime.now(UTC)
        keys = [f"{spec.name}-{self._runs}-{number}" for number in range(instances)]
        parts = [partition_of(key, self._cluster.partitions) for key in keys]
        async with self._database.unit_of_work() as uow:
            published = await uow.workflows.publish(spec, now)
            workflow = published.version.workflow_id
            for key, part in zip(keys, parts, strict=True):
                new = NewCommand(CommandType.START, part, key, workflow)
                await uow.commands.add(new, now)
            await uow.commit()
        await notify(self._session, sorted(set(parts)))

    async def _ended(self, workflow: str) -> bool:
        instances = self._instances[workflow]
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await uow.instances.list(workflow=workflow, limit=instances)
        states = [one.state for one in found]
        if bad := {WorkflowState.FAILED, WorkflowState.STOPPED}.intersection(states):
            raise SystemExit(f"{workflow}: an instance is {bad}")
        return states == [WorkflowState.SUCCEEDED] * instances


@asynccontextmanager
async def one_process(
    cluster: ClusterSettings, master: MasterSettings = _MASTER, *, alerts: bool = False
) -> AsyncIterator[OneProcess]:
    """Run the roles, with ``alerts`` also an alert server.

    ``cluster`` names an empty data folder and an empty ZooKeeper tree.
    """
    create_identity(cluster.data / "tls")
    stop = asyncio.Event()
    async with (
        Database(cluster.database) as database,
        ZkSession(cluster.zookeeper, session_timeout_s=cluster.session_timeout_s) as session,
    ):
        with uncounted():
            await database.migrate()
        roles = [
            start_role(MASTER, serve(master, cluster, stop)),
            start_role(
                AGENT,
                run_worker(WorkerSettings(name="w", slots=SLOTS), cluster, stop, stop),
            ),
        ]
        if alerts:
            roles.append(start_role(ALERT_SERVER, serve_alerts(AlertSettings(), cluster, stop)))
        try:
            await _registered(session, roles)
            yield OneProcess(cluster, database, session)
        finally:
            stop.set()
            await asyncio.gather(*roles)


async def _registered(session: ZkSession, roles: Sequence[asyncio.Task[None]]) -> None:
    async with Members(session, layout.WORKERS) as workers:
        while not workers.current():
            for role in roles:
                if role.done():
                    role.result()
            await asyncio.sleep(_LOOK_S)
