"""Put the parts of a master together, and run them until it is to stop.

Each part is made after those that it needs. What happens in one and concerns another goes through
``Listeners``, with which services are registered.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from os import getpid
from typing import Any

import structlog

from shoal.coordination import (
    BoundTree,
    ClusterClock,
    Members,
    Membership,
    Notifications,
    TaskQueue,
    TreeKeeper,
    ZkSession,
)
from shoal.coordination.cluster import layout
from shoal.coordination.session.loop_lag import LoopLag
from shoal.master.dispatch.revocation import Revoker
from shoal.master.dispatch.rpc import MasterRpc
from shoal.master.engine.actions import Performer
from shoal.master.engine.engine import BatchLimits, ClusterFacts, Engine
from shoal.master.engine.listeners import Listeners
from shoal.master.loops import Background
from shoal.master.membership.database_health import DatabaseHealth
from shoal.master.membership.lost_commits import LostCommits
from shoal.master.membership.participation import Participation
from shoal.master.membership.partitions import PartitionKeeper
from shoal.master.membership.tree_lease import TreeLease
from shoal.master.notifier import Notifier
from shoal.master.services.admission import Admitter
from shoal.master.services.backfills import REQUESTS, BackfillRunner
from shoal.master.services.commands.scanner import Scanner
from shoal.master.services.dependencies import DependencyWatcher
from shoal.master.services.schedules import Scheduler
from shoal.master.services.service import MasterContext, UpkeepJobs
from shoal.master.services.slots import SlotKeeper
from shoal.master.services.sweeper import Sweeper
from shoal.master.services.timers import Timers
from shoal.master.services.upkeep.archived_logs import ArchivedLogSweeper
from shoal.master.services.upkeep.history import HistoryExport
from shoal.master.services.upkeep.purges import Purger
from shoal.master.services.upkeep.resources import ResourceSweeper
from shoal.master.services.upkeep.rollups import RollupLoading
from shoal.master.settings import MasterSettings, UpkeepTimes
from shoal.proto.channels import Channels
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import add_MasterServiceServicer_to_server
from shoal.proto.tls import TlsFiles
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import Storage, StorageLimits
from shoal.runtime.vault import Vault
from shoal.sql import Database
from shoal.sql.tree_binding import TreeBinding

log = structlog.get_logger()

_STOP_GRACE_S = 5.0  # for calls of workers under way at the end; they repeat what was cut off


@dataclass(frozen=True)
class Opened:
    """What a master has opened to work with."""

    master_id: str
    settings: MasterSettings
    cluster: ClusterSettings
    database: Database
    session: ZkSession
    clock: ClusterClock
    tree: BoundTree
    tree_keeper: TreeKeeper
    lost_commits: LostCommits
    vault: Vault
    resolver: Resolver
    upkeep: UpkeepTimes

    @property
    def partitions(self) -> int:
        """How many the cluster has."""
        return self.tree.partitions

    @property
    def cluster_uid(self) -> str:
        """A name that no other cluster has."""
        return self.tree.binding.cluster

    def tree_id(self) -> str:
        """Return the id of the tree that this master works in."""
        binding = self.tree_keeper.binding
        assert binding is not None
        return binding.tree


async def work(stack: contextlib.AsyncExitStack, opened: Opened, stop: asyncio.Event) -> None:
    """Put the parts together, join the cluster, and run until ``stop``."""
    settings, cluster, session, clock = (
        opened.settings,
        opened.cluster,
        opened.session,
        opened.clock,
    )
    # What workers are reached by.
    tls = TlsFiles.of(cluster)
    channels = await stack.enter_async_context(Channels(tls))
    workers = await stack.enter_async_context(Members(session, layout.WORKERS))
    queue = TaskQueue(session)

    # The engine, and what its decisions set off.
    background = await stack.enter_async_context(Background())
    listeners = Listeners()
    performer = Performer(queue, workers, channels, listeners)
    stack.push_async_callback(performer.aclose)
    engine = Engine(
        opened.database,
        performer,
        clock,
        BatchLimits(settings.decide_batch),
        ClusterFacts(
            opened.partitions, opened.cluster_uid, StorageLimits.of(cluster), opened.tree_id
        ),
        listeners,
        retry_s=2 * settings.scan_interval_s,
    )
    revoker = Revoker(
        engine,
        clock,
        workers,
        channels,
        settings.takeover_delay_s,
        cluster.session_timeout_s,
        background,
    )
    stack.callback(workers.on_change(revoker.workers_changed))

    # Services. Each hears from the engine and from other masters what concerns it.
    notifier = Notifier(session, engine.epochs.keys(), listeners, background)
    jobs = UpkeepJobs(clock)
    context = MasterContext(
        database=opened.database,
        engine=engine,
        clock=clock,
        partitions=opened.partitions,
        settings=settings,
        jobs=jobs,
        notify_owners=notifier.notify_owners,
        upkeep=opened.upkeep,
        is_served=lambda group: any(
            one.data.get("group") == group for one in workers.current().values()
        ),
    )
    backfills = BackfillRunner(context)
    scanner = Scanner(context, dict.fromkeys(REQUESTS, backfills.carry_out))
    services = (
        scanner,
        Sweeper(context, queue, revoker.settle),
        Scheduler(context),
        Admitter(context),
        backfills,
        SlotKeeper(context),
        DependencyWatcher(context),
        Timers(clock, engine.wake, settings.kill_retry_s),
    )
    purger = Purger(
        context,
        settings.retention,
        settings.hours,
        settings.purge_trigger,
        is_exported=bool(cluster.history_url),
    )
    listeners.register(*services, purger, notifier)
    stack.callback(workers.on_change(listeners.on_workers_changed))

    # Upkeep: periodic jobs, which register themselves with ``jobs``.
    ResourceSweeper(context, Storage.of(cluster))
    if (archive := LogArchive.of(cluster, opened.cluster_uid)) is not None:
        ArchivedLogSweeper(context, archive)
    if cluster.history_url:
        HistoryExport(context, cluster.history_url, cluster.data)
        RollupLoading(context, cluster.history_url, opened.cluster_uid, cluster.data)

    # Workers reach this master before it owns anything.
    rpc = MasterRpc(
        engine, clock, opened.database, opened.vault, opened.resolver, opened.cluster_uid
    )
    server, address = await start_server(
        tls,
        lambda s: add_MasterServiceServicer_to_server(rpc, s),
        settings.host,
        settings.port,
    )
    stack.push_async_callback(server.stop, _STOP_GRACE_S)

    # Membership: which partitions are this master's, and when it gives them up.
    notifications = await stack.enter_async_context(Notifications(session, listeners.notify))
    keeper = PartitionKeeper(
        session, opened.master_id, address, engine, notifications, opened.partitions, settings
    )
    opened.database.on_fenced(keeper.fenced)
    health = DatabaseHealth(opened.database, cluster.session_timeout_s, clock)

    async def compare() -> None:
        await opened.lost_commits.look_if_due()
        await keeper.compare()

    lease = TreeLease(
        TreeBinding(opened.database), opened.tree_id, compare, cluster.session_timeout_s
    )

    def on_refused() -> None:
        opened.lost_commits.suspect()
        lease.look()

    keeper.on_stranded = on_refused

    lag = LoopLag()

    def news() -> Mapping[str, Any]:
        # A full master leaves starts pending, and is right to.
        given_up = {"given_up": keeper.given_up.as_data()} if keeper.given_up.times else {}
        lost_at = opened.lost_commits.reported
        fenced = keeper.fenced_writes.since(time.monotonic())
        return {
            "keys": list(opened.vault.ids()),
            "full": scanner.was_full,
            **given_up,
            **({"fenced_since": fenced.isoformat()} if fenced else {}),
            **({"lost_commits_at": lost_at} if lost_at else {}),
            **lag.published,
        }

    about: dict[str, Any] = {
        "address": address,
        "host": socket.gethostname(),
        "pid": getpid(),
        "started_at": clock().isoformat(),
        # The longest times between two of a kind: health judges by them when one is late.
        "periods": {
            "purge_s": settings.purge_period_s,
            **({"export_s": settings.export_interval_s} if cluster.history_url else {}),
        },
    }
    data = {**about, "database": health.state.as_data(), **news()}
    membership = Membership(session, layout.MASTERS, opened.master_id, data)
    participation = Participation(
        keeper.share,
        membership,
        Members(session, layout.MASTERS),
        about,
        opened.database,
        health,
        cluster.session_timeout_s,
        news,
    )

    try:
        async with asyncio.TaskGroup() as loops:
            loops.create_task(engine.run(), name="engine")
            loops.create_task(keeper.run(), name="partitions")
            loops.create_task(keeper.give_up_fenced(), name="fenced partitions")
            loops.create_task(lease.run(), name="lease of the tree")
            loops.create_task(opened.tree_keeper.until_foreign(), name="tree of this cluster")
            loops.create_task(notifications.wait(), name="notifications")
            loops.create_task(health.run(), name="database health")
            loops.create_task(lag.run(), name="lag of the event loop")
            loops.create_task(jobs.run(), name="upkeep")
            for service in services:
                loops.create_task(service.run(), name=service.name)
            async with membership, keeper.share, participation:
                loops.create_task(membership.wait(), name="membership")
                loops.create_task(participation.run(), name="participation")
                log.info("master ready", master=opened.master_id, address=address)
                await stop.wait()
                log.info("master stopping", partitions=len(engine.epochs))
                opened.database.hurry()
            raise _Stopped
    except* _Stopped:
        pass


class _Stopped(Exception):
    """The master has been stopped and has left the cluster."""
