"""The parts of one worker, put together in the order of their dependencies.

Two parts that need one another are joined by a subscription: the one that is built later
subscribes to the earlier one. Nothing else is set from outside.
"""

import asyncio
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc.aio

from shoal.coordination import Membership, Owners, TaskQueue, ZkSession
from shoal.coordination.cluster import layout
from shoal.proto.channels import Channels
from shoal.proto.shoal_pb2_grpc import (
    add_LogServiceServicer_to_server,
    add_ProbeServiceServicer_to_server,
    add_ProgressServiceServicer_to_server,
    add_WorkerServiceServicer_to_server,
)
from shoal.worker.agent import Agent, fetch_patience_s
from shoal.worker.attempts.held import HeldAttempts
from shoal.worker.execution.probes import ProbeService
from shoal.worker.execution.runner import Runner
from shoal.worker.execution.service import WorkerService
from shoal.worker.home.disk import DiskGuard
from shoal.worker.home.home import WorkerHome
from shoal.worker.home.resources import ResourceCache
from shoal.worker.home.spool import Spool
from shoal.worker.intake.claims import Claimer
from shoal.worker.intake.eager_dispatch import EagerDispatch
from shoal.worker.intake.fetches import Fetcher
from shoal.worker.intake.reachability import Reachability
from shoal.worker.intake.starts import StartGuard
from shoal.worker.logs.archive import LogArchiver
from shoal.worker.logs.files import LogStore
from shoal.worker.logs.limit import LogLimit
from shoal.worker.logs.progress import ProgressService
from shoal.worker.logs.retention import LogKeeper
from shoal.worker.logs.service import LogService
from shoal.worker.masters import CALL_TIMEOUT_S, Masters, Standings
from shoal.worker.processes.helpers import Helpers
from shoal.worker.processes.launcher import Launcher
from shoal.worker.results.facilities import Facilities
from shoal.worker.results.publications import Publisher
from shoal.worker.results.reporter import Reporter
from shoal.worker.settings import WorkerSettings
from shoal.worker.spark.class_archiver import ClassArchiver
from shoal.worker.spark.command import Profile
from shoal.worker.spark.servers import SparkServers
from shoal.worker.types.spark.class_archive import SETTING as CLASS_ARCHIVES


@dataclass(frozen=True)
class Foundation:
    """What the parts of a worker stand on: all of it is open. ``partitions``: of the cluster."""

    settings: WorkerSettings
    home: WorkerHome
    worker_id: str
    session: ZkSession
    partitions: int
    channels: Channels
    launcher: Launcher
    spool: Spool
    resources_url: str  # of the storage of resources
    logs_url: str  # of the archive of logs; empty: there is none


class Parts:
    """Parts that need no other task of the worker, and no callbacks."""

    def __init__(self, base: Foundation) -> None:
        settings, folders = base.settings, base.home.folders
        self.queue = TaskQueue(base.session)
        self.attempts = HeldAttempts(settings.slots, settings.prefetch)
        # No call is waited for longer than that: later ones need not wait behind it.
        timeout_s = min(CALL_TIMEOUT_S, fetch_patience_s(settings, base.session))
        self.masters = Masters(Owners(base.session), base.channels, timeout_s)
        self.log_limit = LogLimit(settings.log_limit_mb)
        self.store = LogStore(folders.logs, self.log_limit.limit)
        ask = Standings(self.masters, base.partitions)
        archiver = None
        if base.logs_url:
            archiver = LogArchiver(
                self.store.root,
                base.logs_url,
                self.attempts,
                ask,
                Helpers(folders.work, base.launcher, os.environ),
                base.home.former_logs,
            )
        watched = (folders.work, folders.logs, folders.spool, folders.resources)
        self.disk = DiskGuard(watched, settings.min_free_mb)
        self.log_keeper = LogKeeper(
            self.store.root,
            folders.work,
            folders.spool,
            self.attempts,
            ask,
            settings.log_retention_days,
            settings.min_free_mb,
            base.home.former_logs,
            archiver,
        )


class Worker:
    """One worker whose loops run in ``tasks``; ``stop`` is set when it is to leave."""

    def __init__(
        self, base: Foundation, parts: Parts, tasks: asyncio.TaskGroup, stop: asyncio.Event
    ) -> None:
        self.base, self.parts = base, parts
        attempts = parts.attempts
        self.reachability = Reachability(parts.masters, tasks, base.partitions)
        self.starting = StartGuard(base.launcher, tasks)
        self.agent = _agent(base, parts, tasks, self.reachability, self.starting)
        self.reporter = Reporter(parts.masters, in_no_hurry=lambda: attempts.has_enough)
        self.spark_servers = _spark_servers(base, tasks)
        self._archiving = _archiving(base, tasks)
        self._resources = _resources(base, tasks)
        self.runner = _runner(
            base,
            _surroundings(base, parts.store, self._resources, tasks),
            parts,
            tasks,
            self.starting,
            self.agent,
            self.reporter,
            self.spark_servers,
        )
        self.fetcher = Fetcher(
            tasks, parts.masters, base.worker_id, self.runner.start, self.runner.refuse
        )
        self.eager_dispatch = EagerDispatch(
            base.session,
            parts.queue,
            attempts,
            tasks,
            group=base.settings.group,
            worker_id=base.worker_id,
            room=lambda: None if self._takes_nothing(stop) else attempts.room,
            start=self.runner.start,
            fetch=self.fetcher.fetch,
            interrupt=self.runner.interrupt,
        )
        if base.settings.eager_dispatch:
            self.reporter.attach(self.eager_dispatch)

    def _takes_nothing(self, stop: asyncio.Event) -> bool:
        return bool(stop.is_set() or self.parts.disk.shortage or self.starting.shortage)

    def claimer(self) -> Claimer:
        """Return what claims tasks for this worker."""
        return Claimer(
            self.base.session,
            self.parts.queue,
            self.fetcher,
            self.parts.attempts,
            self.parts.disk,
            self.reachability,
            self.starting,
            group=self.base.settings.group,
            worker_id=self.base.worker_id,
        )

    def member(self, address: str) -> Membership:
        """Return the worker's membership; ``address`` is that of its server."""
        self.agent.serve_at(address)
        base = self.base
        return Membership(base.session, layout.WORKERS, base.worker_id, self.agent.member_data)

    def register(self, server: grpc.aio.Server) -> None:
        """Add the worker's services to its server."""
        parts = self.parts
        service = WorkerService(
            self.base.worker_id, parts.queue, parts.attempts, self.runner, self.eager_dispatch
        )
        add_WorkerServiceServicer_to_server(service, server)
        add_LogServiceServicer_to_server(LogService(parts.store, parts.attempts), server)
        add_ProgressServiceServicer_to_server(ProgressService(parts.attempts), server)
        probes = ProbeService(
            self.base.launcher,
            self.base.home.folders.work,
            os.environ,
            self.base.settings.env_pass,
            self.spark_servers.describe,
        )
        add_ProbeServiceServicer_to_server(probes, server)

    async def close(self) -> None:
        """End what has no end of its own."""
        self.reachability.close()
        self.starting.close()
        self._resources.close()
        if self._archiving is not None:
            self._archiving.cancel()
        await self.spark_servers.close()


def _agent(
    base: Foundation,
    parts: Parts,
    tasks: asyncio.TaskGroup,
    reachability: Reachability,
    starting: StartGuard,
) -> Agent:
    return Agent(
        base.settings,
        base.session,
        parts.queue,
        base.launcher,
        parts.attempts,
        tasks,
        parts.disk,
        parts.log_limit,
        parts.masters,
        reachability,
        starting,
        parts.log_keeper,
        _about(base.settings, base.home),
    )


def _runner(
    base: Foundation,
    surroundings: Facilities,
    parts: Parts,
    tasks: asyncio.TaskGroup,
    starting: StartGuard,
    agent: Agent,
    reporter: Reporter,
    spark_servers: SparkServers,
) -> Runner:
    session = base.session
    return Runner(
        surroundings,
        parts.attempts,
        base.launcher,
        reporter,
        tasks,
        parts.log_limit,
        starting,
        parts.disk,
        spark_servers,
        renew_lease=agent.renew_lease,
        is_present=lambda claim: claim.generation == session.generation,
        drop_claims=agent.drop_claims,
        requeue=agent.requeue,
    )


def _spark_servers(base: Foundation, tasks: asyncio.TaskGroup) -> SparkServers:
    settings = base.settings
    return SparkServers(
        base.home.folders.work,
        base.launcher,
        tasks,
        Profile(settings.spark_memory_mb, settings.spark_master, _class_archives(base)),
        most=settings.spark_servers,
        idle_s=settings.spark_idle_s,
        worker_env=os.environ,
    )


def _class_archives(base: Foundation) -> str:
    """Return the folder with archives of Spark's classes; empty: there are to be none."""
    return str(base.home.folders.spark_classes) if base.settings.spark_class_archive else ""


def _archiving(base: Foundation, tasks: asyncio.TaskGroup) -> asyncio.Task[None] | None:
    if not (root := _class_archives(base)):
        return None
    archiver = ClassArchiver(Path(root), base.home.folders.work, base.launcher, os.environ)
    return tasks.create_task(archiver.run())


def _resources(base: Foundation, tasks: asyncio.TaskGroup) -> ResourceCache:
    folders = base.home.folders
    resources = ResourceCache(
        folders.resources,
        base.resources_url,
        base.settings.resource_cache_mb << 20,
        Helpers(folders.work, base.launcher, os.environ),
        tasks,
    )
    resources.prepare()
    return resources


def _surroundings(
    base: Foundation, store: LogStore, resources: ResourceCache, tasks: asyncio.TaskGroup
) -> Facilities:
    helpers = Helpers(base.home.folders.work, base.launcher, os.environ)
    return Facilities(
        worker_id=base.worker_id,
        group=base.settings.group,
        work_root=base.home.folders.work,
        store=store,
        spool=base.spool,
        worker_env=dict(os.environ),
        env_pass=base.settings.env_pass,
        kill_grace_s=base.settings.kill_grace_s,
        resources=resources,
        publisher=Publisher(base.resources_url, helpers, base.spool, tasks),
        type_settings={**base.settings.for_task_types(), CLASS_ARCHIVES: _class_archives(base)},
    )


def _about(settings: WorkerSettings, home: WorkerHome) -> dict[str, Any]:
    return {
        "group": settings.group,
        "slots": settings.slots,
        "name": home.name,  # the same after a restart, unlike the id
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started_at": datetime.now(UTC).isoformat(),
    }
