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

import grpc.aio
import structlog

from shoal.coordination import Membership, Owners, TaskQueue, ZkSession
from shoal.coordination.cluster import layout
from shoal.proto.channels import Channels
from shoal.proto.shoal_pb2_grpc import (
    add_LogServiceServicer_to_server,
    add_ProbeServiceServicer_to_server,
    add_ProgressServiceServicer_to_server,
    add_WorkerServiceServicer_to_server,
)
from shoal.worker.agent import Agent, Lifetime, Loops
from shoal.worker.attempts.held import HeldAttempts, PrefetchTimes
from shoal.worker.execution.probes import ProbeService
from shoal.worker.execution.runner import Runner
from shoal.worker.execution.service import WorkerService
from shoal.worker.home.disk import DiskGuard
from shoal.worker.home.home import WorkerHome
from shoal.worker.home.resources import ResourceCache
from shoal.worker.home.spool import Spool
from shoal.worker.intake.claims import Claimer
from shoal.worker.intake.eager_dispatch import EagerDispatch
from shoal.worker.intake.fetches import Fetcher, give_up_unanswered
from shoal.worker.intake.held_claims import HeldClaims
from shoal.worker.intake.presence import Presence
from shoal.worker.intake.reachability import Reachability
from shoal.worker.intake.readiness import Readiness
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
from shoal.worker.processes.lease import Lease
from shoal.worker.results.facilities import Facilities
from shoal.worker.results.publications import Publisher
from shoal.worker.results.reporter import Reporter
from shoal.worker.settings import WorkerSettings
from shoal.worker.spark.class_archiver import ClassArchiver
from shoal.worker.spark.command import Profile
from shoal.worker.spark.servers import SparkServers
from shoal.worker.types.spark.class_archive import SETTING as CLASS_ARCHIVES

log = structlog.get_logger()

FETCH_PATIENCE = 1 / 2  # of the session timeout: how long a claim may be without an answer
LAST_REPORTS_S = 5.0  # to hand over results before leaving; the rest waits in the spool
LAST_LOGS_S = 10.0  # to copy logs to the archive before leaving; a next life does the rest


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
    prefetch_times: PrefetchTimes


class Worker:
    """One worker whose loops run in ``tasks``."""

    def __init__(self, base: Foundation, tasks: asyncio.TaskGroup, lifetime: Lifetime) -> None:
        settings, folders, launcher = base.settings, base.home.folders, base.launcher
        self._base, self._tasks, self._lifetime = base, tasks, lifetime
        helpers = Helpers(folders.work, launcher, os.environ)
        self._queue = TaskQueue(base.session)
        self._attempts = attempts = HeldAttempts(
            settings.slots, settings.prefetch, base.prefetch_times
        )
        self._lease = Lease(base.session, launcher)
        self._claims = HeldClaims(base.session, self._queue, tasks)
        self._fetch_patience_s = (
            settings.fetch_patience_s or FETCH_PATIENCE * base.session.timeout_s
        )
        # No call is waited for longer than that: later ones need not wait behind it.
        timeout_s = min(CALL_TIMEOUT_S, self._fetch_patience_s)
        self._masters = Masters(Owners(base.session), base.channels, timeout_s)

        # Logs: written up to a limit, kept for a while, copied to the archive.
        self._log_limit = LogLimit(settings.log_limit_mb)
        self.store = LogStore(folders.logs, self._log_limit.limit)
        standings = Standings(self._masters, base.partitions)
        former = base.home.former_logs
        archiver = None
        if base.logs_url:
            archiver = LogArchiver(
                self.store.root, base.logs_url, attempts, standings, helpers, former
            )
        self._log_keeper = LogKeeper(
            root=self.store.root,
            work=folders.work,
            spool=folders.spool,
            attempts=attempts,
            ask=standings,
            retention_days=settings.log_retention_days,
            min_free_mb=settings.min_free_mb,
            former=former,
            archiver=archiver,
        )

        # Whether the worker takes tasks, and what it publishes of itself.
        watched = (folders.work, folders.logs, folders.spool, folders.resources)
        self._readiness = Readiness(
            DiskGuard(watched, settings.min_free_mb),
            StartGuard(launcher, tasks),
            Reachability(self._masters, tasks, base.partitions),
            lifetime.stop,
        )
        reachability = self._readiness.reachability
        reachability.subscribe(lambda: self._queue.leave_out(reachability.partitions))
        self._about = {
            "group": settings.group,
            "slots": settings.slots,
            "name": base.home.name,  # the same after a restart, unlike the id
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started_at": datetime.now(UTC).isoformat(),
        }

        # Attempts: run, and reported.
        self.reporter = Reporter(self._masters, in_no_hurry=lambda: attempts.has_enough)
        classes = str(folders.spark_classes) if settings.spark_class_archive else ""
        self._spark_servers = SparkServers(
            folders.work,
            launcher,
            tasks,
            Profile(settings.spark_memory_mb, settings.spark_master, classes),
            most=settings.spark_servers,
            idle_s=settings.spark_idle_s,
            worker_env=os.environ,
        )
        self._class_archiving: asyncio.Task[None] | None = None
        if classes:
            class_archiver = ClassArchiver(Path(classes), folders.work, launcher, os.environ)
            self._class_archiving = tasks.create_task(class_archiver.run())
        self._resources = ResourceCache(
            folders.resources, base.resources_url, settings.resource_cache_mb << 20, helpers, tasks
        )
        self._resources.prepare()
        facilities = Facilities(
            worker_id=base.worker_id,
            group=settings.group,
            work_root=folders.work,
            store=self.store,
            log_limit=self._log_limit,
            spool=base.spool,
            worker_env=dict(os.environ),
            env_pass=settings.env_pass,
            kill_grace_s=settings.kill_grace_s,
            resources=self._resources,
            publisher=Publisher(base.resources_url, helpers, base.spool, tasks),
            type_settings={**settings.for_task_types(), CLASS_ARCHIVES: classes},
        )
        self._runner = Runner(
            facilities,
            attempts,
            launcher,
            self.reporter,
            tasks,
            self._readiness,
            self._claims,
            self._spark_servers,
        )

        # Where tasks come from: the queue, and the answers to reports.
        self._fetcher = Fetcher(
            tasks, self._masters, base.worker_id, self._runner.start, self._runner.refuse
        )
        self._eager_dispatch = EagerDispatch(
            base.session,
            self._queue,
            attempts,
            tasks,
            self._fetcher,
            self._readiness,
            group=settings.group,
            worker_id=base.worker_id,
        )
        self._eager_dispatch.when_claim_is_lost(self._runner.interrupt)
        if settings.eager_dispatch:
            self.reporter.attach(self._eager_dispatch)

    async def run(self, address: str) -> None:
        """Work until the worker is to stop; ``address`` is that of its server."""
        base, readiness, log_keeper = self._base, self._readiness, self._log_keeper
        about = {"address": address, **self._about}
        presence = Presence(about, self._attempts, readiness, log_keeper)
        agent = Agent(
            base.settings,
            base.session,
            self._attempts,
            self._tasks,
            self._claims,
            presence,
            self._runner,
        )
        claimer = Claimer(
            base.session,
            self._queue,
            self._fetcher,
            self._attempts,
            readiness,
            group=base.settings.group,
            worker_id=base.worker_id,
        )
        patience_s, refuse = self._fetch_patience_s, self._runner.refuse
        loops = Loops(
            always=(
                self.reporter.run,
                self._lease.keep,
                self._log_limit.watch,
                lambda: give_up_unanswered(self._attempts, self._masters, patience_s, refuse),
            ),
            until_stop=(
                lambda: readiness.disk.watch(self._attempts.until_any),
                lambda: log_keeper.watch(presence.publish_soon),
                presence.measure_lag,
                log_keeper.archive,
            ),
            farewells=((self.reporter.drained, LAST_REPORTS_S), (log_keeper.finish, LAST_LOGS_S)),
        )
        await readiness.disk.check()  # before the first claim
        member = Membership(base.session, layout.WORKERS, base.worker_id, presence.data)
        await agent.run(member, claimer, loops, self._lifetime)
        log.info("worker stopped", unreported=len(self.reporter))

    def register(self, server: grpc.aio.Server) -> None:
        """Add the worker's services to its server."""
        base, attempts = self._base, self._attempts
        service = WorkerService(
            base.worker_id, self._queue, attempts, self._runner, self._eager_dispatch
        )
        add_WorkerServiceServicer_to_server(service, server)
        add_LogServiceServicer_to_server(LogService(self.store, attempts), server)
        add_ProgressServiceServicer_to_server(ProgressService(attempts), server)
        probes = ProbeService(
            base.launcher,
            base.home.folders.work,
            os.environ,
            base.settings.env_pass,
            self._spark_servers.describe,
        )
        add_ProbeServiceServicer_to_server(probes, server)

    async def close(self) -> None:
        """End what has no end of its own."""
        self._readiness.reachability.close()
        self._readiness.starts.close()
        self._resources.close()
        if self._class_archiving is not None:
            self._class_archiving.cancel()
        await self._spark_servers.close()
