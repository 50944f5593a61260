"""How the parts of a master are put together, and run until it is to stop.

All parts are made here, each after those that it needs. What happens in one and concerns another
goes through ``Listeners``, with which services are registered.
"""

import asyncio
import contextlib
import socket
from collections.abc import Mapping, Sequence
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
from shoal.master.dispatch.revocation import Revoker
from shoal.master.dispatch.rpc import MasterRpc
from shoal.master.engine.actions import Performer
from shoal.master.engine.engine import Engine
from shoal.master.engine.listeners import Listeners
from shoal.master.engine.messages import Messenger
from shoal.master.engine.publications import Publications
from shoal.master.loops import Background
from shoal.master.membership.database_health import DatabaseHealth
from shoal.master.membership.participation import Participation
from shoal.master.membership.partitions import PartitionKeeper
from shoal.master.membership.tree_lease import TreeLease
from shoal.master.notifier import Notifier
from shoal.master.services.admission import Admitter
from shoal.master.services.backfills import REQUESTS, BackfillRunner
from shoal.master.services.commands.scanner import Scanner
from shoal.master.services.dependencies import DependencyWatcher
from shoal.master.services.schedules import Scheduler
from shoal.master.services.service import MasterContext, Service
from shoal.master.services.slots import SlotKeeper
from shoal.master.services.sweeper import Sweeper
from shoal.master.services.timers import Timers
from shoal.master.services.upkeep.archived_logs import ArchivedLogSweeper
from shoal.master.services.upkeep.history import HistoryExport
from shoal.master.services.upkeep.purges import Purger
from shoal.master.services.upkeep.resources import ResourceSweeper
from shoal.master.services.upkeep.rollups import RollupLoading
from shoal.master.settings import MasterSettings
from shoal.proto.channels import Channels
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import add_MasterServiceServicer_to_server
from shoal.proto.tls import TlsFiles
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import Limits, Storage
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
    vault: Vault
    resolver: Resolver

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


@dataclass(frozen=True)
class _Workers:
    """What a master reaches workers by."""

    members: Members
    channels: Channels
    queue: TaskQueue


async def work(stack: contextlib.AsyncExitStack, opened: Opened, stop: asyncio.Event) -> None:
    """Put the parts together, join the cluster, and run until ``stop``."""
    workers = await _workers(stack, opened)
    background = await stack.enter_async_context(Background())
    listeners = Listeners()
    engine = _engine(stack, opened, workers, listeners)
    notifier = Notifier(opened.session, engine.epochs.keys(), listeners, background)
    context = MasterContext(
        opened.database,
        engine,
        opened.clock,
        opened.partitions,
        opened.settings,
        notifier.notify_owners,
    )
    revoker = _revoker(stack, opened, engine, workers, background)
    services = _services(
        context,
        workers,
        revoker,
        Storage.of(opened.cluster),
        LogArchive.of(opened.cluster, opened.cluster_uid),
        HistoryExport(context, opened.cluster.history_url, opened.cluster.data),
        RollupLoading(context, opened.cluster.history_url, opened.cluster_uid, opened.cluster.data),
    )
    listeners.register(*services, notifier)
    stack.callback(workers.members.on_change(listeners.on_workers_changed))
    address = await _serve_workers(stack, opened, engine)
    notifications = await stack.enter_async_context(Notifications(opened.session, listeners.notify))
    keeper = _keeper(opened, engine, notifications, address)
    opened.database.on_fenced(keeper.fenced)
    await _run(opened, engine, services, keeper, address, stop)


async def _workers(stack: contextlib.AsyncExitStack, opened: Opened) -> _Workers:
    channels = await stack.enter_async_context(Channels(TlsFiles.of(opened.cluster)))
    members = await stack.enter_async_context(Members(opened.session, layout.WORKERS))
    return _Workers(members, channels, TaskQueue(opened.session))


def _engine(
    stack: contextlib.AsyncExitStack, opened: Opened, workers: _Workers, listeners: Listeners
) -> Engine:
    performer = Performer(workers.queue, workers.members, workers.channels, listeners)
    stack.push_async_callback(performer.aclose)
    return Engine(
        opened.database,
        performer,
        opened.clock,
        opened.settings.decide_batch,
        Messenger(opened.partitions),
        listeners,
        Publications(opened.cluster_uid, Limits.of(opened.cluster)),
        retry_s=2 * opened.settings.scan_interval_s,
        tree=opened.tree_id,
    )


def _revoker(
    stack: contextlib.AsyncExitStack,
    opened: Opened,
    engine: Engine,
    workers: _Workers,
    background: Background,
) -> Revoker:
    revoker = Revoker(
        engine,
        opened.clock,
        workers.members,
        workers.channels,
        opened.settings.takeover_delay_s,
        opened.cluster.session_timeout_s,
        background,
    )
    stack.callback(workers.members.on_change(revoker.workers_changed))
    return revoker


def _services(
    context: MasterContext,
    workers: _Workers,
    revoker: Revoker,
    storage: Storage,
    archive: LogArchive | None,
    export: HistoryExport,
    loading: RollupLoading,
) -> Sequence[Service]:
    settings = context.settings
    backfills = BackfillRunner(context)
    return (
        Scanner(context, dict.fromkeys(REQUESTS, backfills.carry_out)),
        Sweeper(context, workers.queue, revoker.settle),
        Scheduler(context),
        Admitter(context),
        backfills,
        SlotKeeper(context),
        DependencyWatcher(context),
        Timers(context.clock, context.engine.wake, settings.kill_retry_s),
        Purger(
            context,
            settings.retention,
            settings.hours,
            settings.purge_trigger,
            is_exported=export.is_on,
        ),
        ResourceSweeper(context, storage),
        ArchivedLogSweeper(context, archive),
        export,
        loading,
    )


async def _serve_workers(stack: contextlib.AsyncExitStack, opened: Opened, engine: Engine) -> str:
    """Answer workers; return the address that they reach this master at."""
    rpc = MasterRpc(
        engine,
        opened.clock,
        opened.database,
        opened.vault,
        opened.resolver,
        opened.cluster_uid,
    )
    server, address = await start_server(
        TlsFiles.of(opened.cluster),
        lambda s: add_MasterServiceServicer_to_server(rpc, s),
        opened.settings.host,
        opened.settings.port,
    )
    stack.push_async_callback(server.stop, _STOP_GRACE_S)
    return address


def _keeper(
    opened: Opened, engine: Engine, notifications: Notifications, address: str
) -> PartitionKeeper:
    return PartitionKeeper(
        opened.session,
        opened.master_id,
        address,
        engine,
        notifications,
        opened.partitions,
        opened.settings,
    )


async def _run(
    opened: Opened,
    engine: Engine,
    services: Sequence[Service],
    keeper: PartitionKeeper,
    address: str,
    stop: asyncio.Event,
) -> None:
    """Run the loops, as a member of the cluster, until ``stop``."""
    health = DatabaseHealth(opened.database, opened.cluster.session_timeout_s, opened.clock)
    lease = TreeLease(
        TreeBinding(opened.database),
        opened.tree_id,
        keeper.compare,
        opened.cluster.session_timeout_s,
    )
    keeper.on_stranded = lease.look
    membership, participation = _membership(opened, health, keeper, services, address)
    try:
        async with asyncio.TaskGroup() as loops:
            loops.create_task(engine.run(), name="engine")
            loops.create_task(keeper.run(), name="partitions")
            loops.create_task(keeper.give_up_fenced(), name="fenced partitions")
            loops.create_task(lease.run(), name="lease of the tree")
            loops.create_task(opened.tree_keeper.until_foreign(), name="tree of this cluster")
            loops.create_task(health.run(), name="database health")
            for service in services:
                loops.create_task(service.run(), name=service.name)
            async with membership, keeper.share, participation:
                loops.create_task(participation.run(), name="participation")
                log.info("master ready", master=opened.master_id, address=address)
                await stop.wait()
                log.info("master stopping", partitions=len(engine.epochs))
                opened.database.hurry()
            raise _Stopped
    except* _Stopped:
        pass


def _membership(
    opened: Opened,
    health: DatabaseHealth,
    keeper: PartitionKeeper,
    services: Sequence[Service],
    address: str,
) -> tuple[Membership, Participation]:
    """Return the master's node in the cluster, and what decides when it shares partitions."""

    def news() -> Mapping[str, Any]:
        # A full master leaves starts pending, and is right to.
        is_full = any(isinstance(one, Scanner) and one.was_full for one in services)
        given_up = {"given_up": keeper.given_up.as_data()} if keeper.given_up.times else {}
        return {"keys": list(opened.vault.ids()), "full": is_full, **given_up}

    about: dict[str, Any] = {
        "address": address,
        "host": socket.gethostname(),
        "pid": getpid(),
        "started_at": opened.clock().isoformat(),
    }
    data = {**about, "database": health.state.as_data(), **news()}
    membership = Membership(opened.session, layout.MASTERS, opened.master_id, data)
    participation = Participation(
        keeper.share,
        membership,
        Members(opened.session, layout.MASTERS),
        about,
        opened.database,
        health,
        opened.cluster.session_timeout_s,
        news,
    )
    return membership, participation


class _Stopped(Exception):
    """The master has been stopped and has left the cluster."""
