"""A master process: put the parts together, run until told to stop, leave in order."""

import asyncio
import contextlib
import os
import signal
import socket
import uuid
from collections.abc import Iterable

import structlog

from shoal.coordination import (
    ClusterClock,
    Group,
    GroupSettings,
    Members,
    Membership,
    Notifications,
    TaskQueue,
    TreeKeeper,
    ZkSession,
)
from shoal.coordination.assignors import cooperative_sticky
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.notifications import notify
from shoal.coordination.starting import connect_when_there
from shoal.core.errors import ShoalError
from shoal.master.dispatch.revoking import Revoker
from shoal.master.dispatch.rpc import MasterRpc
from shoal.master.engine.engine import Engine
from shoal.master.engine.messages import Messenger
from shoal.master.engine.perform import Performer
from shoal.master.engine.timers import Timers
from shoal.master.membership.database_health import DatabaseHealth
from shoal.master.membership.participation import Participation
from shoal.master.membership.partitions import PartitionKeeper
from shoal.master.services.admission import Admission
from shoal.master.services.backfills import REQUESTS, Backfills
from shoal.master.services.dependencies import DependencyWatcher
from shoal.master.services.purging import Purger
from shoal.master.services.scan import Scanner
from shoal.master.services.schedules import Scheduler
from shoal.master.services.slots import SlotKeeper
from shoal.master.services.sweep import Sweeper
from shoal.master.settings import MasterSettings
from shoal.proto.channels import Channels
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import add_MasterServiceServicer_to_server
from shoal.proto.tls import TlsFiles
from shoal.proto.vault import Vault
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database, Patience
from shoal.sql.starting import migrate_when_there

log = structlog.get_logger()

_STOP_GRACE_S = 5.0

GROUP = "masters"  # in which masters share the partitions
TOPIC = "partitions"


async def serve(
    settings: MasterSettings, cluster: ClusterSettings, stop: asyncio.Event | None = None
) -> None:
    """Run one master until ``stop`` is set (None: until SIGTERM or SIGINT).

    Raises what ended it otherwise.
    """
    if stop is None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    master_id = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    opened = asyncio.Event()
    working = asyncio.create_task(
        _open_and_work(settings, cluster, stop, opened, master_id), name="master"
    )
    told = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, told}, return_when=asyncio.FIRST_COMPLETED)
        if opened.is_set():  # it heeds ``stop`` from then on, and leaves in order
            await asyncio.wait({working})
    finally:
        told.cancel()
        working.cancel()
        await asyncio.wait({working})
    if not (working.cancelled() and stop.is_set()):
        working.result()
    log.info("master stopped", master=master_id)


async def _open_and_work(
    settings: MasterSettings,
    cluster: ClusterSettings,
    stop: asyncio.Event,
    opened: asyncio.Event,
    master_id: str,
) -> None:
    """Open what a master works with, waiting for what is away; then work until ``stop``."""
    async with contextlib.AsyncExitStack() as stack:
        patience = Patience.of(cluster.database_silence_s)
        database = await stack.enter_async_context(Database(cluster.database, patience=patience))
        await migrate_when_there(database)
        session = await connect_when_there(
            lambda: ZkSession(
                cluster.zookeeper,
                session_timeout_s=cluster.session_timeout_s,
                name=master_id,
                credential=cluster.zookeeper_credential,
            )
        )
        stack.push_async_exit(session)
        partitions = await layout.prepare(session, cluster.partitions)
        await stack.enter_async_context(TreeKeeper(session, partitions))
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(partitions)
            await uow.commit()
        clock = await stack.enter_async_context(ClusterClock(session, database.clocks))
        opened.set()
        await _work(stack, stop, settings, cluster, database, session, clock, partitions, master_id)


async def _work(
    stack: contextlib.AsyncExitStack,
    stop: asyncio.Event,
    settings: MasterSettings,
    cluster: ClusterSettings,
    database: Database,
    session: ZkSession,
    clock: ClusterClock,
    partitions: int,
    master_id: str,
) -> None:
    """Wire the parts, register, and run the loops until ``stop``."""
    tls = TlsFiles.of(cluster)
    channels = await stack.enter_async_context(Channels(tls))
    workers = await stack.enter_async_context(Members(session, layout.WORKERS))
    queue = TaskQueue(session)

    def notify_soon(notified: Iterable[int]) -> None:
        """Tell the owners of ``notified``: a hint, so nobody waits for it."""
        for partition in (partitions := set(notified)) & engine.epochs.keys():
            heard(partition)
        if others := partitions - engine.epochs.keys():
            loops.create_task(_notify(session, others), name="notify")

    timers = Timers(clock, lambda instance_id: engine.wake(instance_id))
    performer = Performer(
        queue,
        workers,
        channels,
        timers,
        settings.kill_retry_s,
        on_trouble=lambda: sweeper.look_soon(),
        on_ask=lambda run, key: slots.ask(run, key),
        on_watch=lambda run, key: dependencies.watch(run, key),
    )
    stack.push_async_callback(performer.aclose)
    engine = Engine(
        database,
        performer,
        clock,
        settings.decide_batch,
        Messenger(partitions, notify_soon),
        retry_s=2 * settings.scan_interval_s,
    )
    admission = Admission(database, engine, clock, notify_soon)
    engine.at_end.append(admission.at_end_of)
    revoker = Revoker(
        workers,
        channels,
        settings.takeover_delay_s,
        spawn=lambda asking: loops.create_task(asking),
        on_lost=lambda run, attempt, why: sweeper.declare_lost(run, attempt, why),
    )
    sweeper = Sweeper(
        engine, queue, clock, settings.sweep_interval_s, revoker.look_into, partitions
    )
    backfills = Backfills(
        database, engine, clock, partitions, settings.scan_interval_s, notify_soon
    )
    engine.on_end.append(backfills.run_ended)
    engine.on_end.append(lambda run: timers.drop(run.id))
    engine.on_gone.append(timers.drop)
    slots = SlotKeeper(database, engine, clock, settings.scan_interval_s, notify_soon)
    engine.on_stored.append(slots.stored)
    dependencies = DependencyWatcher(database, engine, clock, settings.scan_interval_s, notify_soon)
    engine.on_stored.append(dependencies.stored)
    scanner = Scanner(
        database,
        engine,
        clock,
        settings.scan_interval_s,
        settings.scan_batch,
        dict.fromkeys(REQUESTS, backfills.carry_out),
        max_open=settings.max_open_instances,
        notify_owners=notify_soon,
    )
    engine.on_end.append(scanner.run_ended)
    scheduler = Scheduler(
        database, engine, clock, partitions, settings.scan_interval_s, notify_soon
    )
    purger = Purger(
        database,
        engine,
        clock,
        settings.retention,
        settings.hours,
        interval_s=settings.purge_interval_s,
        look_s=settings.scan_interval_s,
        batch=settings.purge_batch,
        share=settings.purge_share,
    )

    def heard(partition: int) -> None:
        scanner.notify(partition)
        scheduler.look_soon(partition)
        backfills.look_soon(partition)
        slots.look_soon(partition)
        dependencies.look_soon(partition)

    rpc = MasterRpc(engine, clock, database, Vault.of(cluster), revoker.being_killed)
    server, address = await start_server(
        tls, lambda s: add_MasterServiceServicer_to_server(rpc, s), settings.host, settings.port
    )
    stack.push_async_callback(server.stop, _STOP_GRACE_S)
    notifications = await stack.enter_async_context(Notifications(session, heard))
    keeper = PartitionKeeper(
        session, master_id, address, engine, notifications, settings.takeover_delay_s
    )

    def make_group() -> Group:
        return Group(
            session,
            GROUP,
            topics={TOPIC: partitions},
            listener=keeper,
            assignors=[cooperative_sticky],
            settings=GroupSettings(
                rebalance_timeout_s=settings.rebalance_timeout_s,
                initial_rebalance_delay_s=settings.initial_rebalance_delay_s,
            ),
            client_id=master_id,
        )

    stack.callback(workers.on_change(lambda _view: sweeper.look_soon()))
    about = {
        "address": address,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started_at": clock().isoformat(),
    }
    health = DatabaseHealth(database, cluster.session_timeout_s, clock)
    membership = Membership(
        session, layout.MASTERS, master_id, {**about, "database": health.state.as_data()}
    )
    participation = Participation(
        make_group,
        membership,
        Members(session, layout.MASTERS),
        about,
        database,
        health,
        cluster.session_timeout_s,
    )
    try:
        async with asyncio.TaskGroup() as loops:
            for work in (
                engine.work,
                keeper.work,
                scanner.work,
                sweeper.work,
                scheduler.work,
                admission.work,
                backfills.work,
                slots.work,
                dependencies.work,
                timers.work,
                health.work,
                purger.work,
            ):
                loops.create_task(work(), name=work.__qualname__)
            async with keeper.ownership, membership, participation:
                loops.create_task(participation.work(), name="participation")
                log.info("master ready", master=master_id, address=address)
                await stop.wait()
                log.info("master stopping", partitions=len(engine.epochs))
                database.hurry()
            raise _Stopped
    except* _Stopped:
        pass


class _Stopped(Exception):
    """The master was told to stop and has left the cluster."""


async def _notify(session: ZkSession, partitions: Iterable[int]) -> None:
    try:
        await notify(session, partitions)
    except ShoalError as error:
        log.debug("notification not notified; the owner looks by itself", error=str(error))
