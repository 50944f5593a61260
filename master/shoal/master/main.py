"""A master process: put the parts together, run until told to stop, leave in order."""

import asyncio
import contextlib
import os
import signal
import socket
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

import structlog

from shoal.coordination import (
    Bells,
    Group,
    GroupSettings,
    Members,
    Membership,
    TaskQueue,
    ZkSession,
    layout,
)
from shoal.coordination.assignors import cooperative_sticky
from shoal.coordination.bell import ring
from shoal.core.errors import ShoalError
from shoal.core.settings import ClusterSettings
from shoal.master.admission import Admission
from shoal.master.backfills import REQUESTS, Backfills
from shoal.master.dependencies import DependencyWatcher
from shoal.master.engine import Engine
from shoal.master.messages import Messenger
from shoal.master.partitions import PartitionKeeper
from shoal.master.perform import Performer
from shoal.master.rpc import MasterRpc
from shoal.master.scan import Scanner
from shoal.master.schedules import Scheduler
from shoal.master.settings import MasterSettings
from shoal.master.slots import SlotKeeper
from shoal.master.sweep import Sweeper
from shoal.master.timers import Timers
from shoal.proto.channels import Channels
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import add_MasterServiceServicer_to_server
from shoal.proto.tls import TlsFiles
from shoal.proto.vault import Vault
from shoal.sql import Database

log = structlog.get_logger()

_STOP_GRACE_S = 5.0

GROUP = "masters"  # in which masters share the partitions
TOPIC = "partitions"


def utc_now() -> datetime:
    """The clock of a master."""
    return datetime.now(UTC)


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
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(cluster.database))
        await database.migrate()
        session = await stack.enter_async_context(
            ZkSession(
                cluster.zookeeper, session_timeout_s=cluster.session_timeout_s, name=master_id
            )
        )
        partitions = await layout.prepare(session, cluster.partitions)
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(partitions)
            await uow.commit()
        await _work(stack, stop, settings, cluster, database, session, partitions, master_id)
    log.info("master stopped", master=master_id)


async def _work(
    stack: contextlib.AsyncExitStack,
    stop: asyncio.Event,
    settings: MasterSettings,
    cluster: ClusterSettings,
    database: Database,
    session: ZkSession,
    partitions: int,
    master_id: str,
) -> None:
    """Wire the parts, register, and run the loops until ``stop``."""
    tls = TlsFiles.of(cluster)
    channels = await stack.enter_async_context(Channels(tls))
    workers = await stack.enter_async_context(Members(session, layout.WORKERS))
    queue = TaskQueue(session)

    def ring_soon(rung: Iterable[int]) -> None:
        """Tell the owners of ``rung``: a hint, so nobody waits for it."""
        for partition in (partitions := set(rung)) & engine.epochs.keys():
            heard(partition)
        if others := partitions - engine.epochs.keys():
            loops.create_task(_ring(session, others), name="ring")

    timers = Timers(utc_now, lambda instance_id: engine.wake(instance_id))
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
        database, performer, utc_now, settings.decide_batch, Messenger(partitions, ring_soon)
    )
    admission = Admission(database, engine, utc_now, ring_soon)
    engine.at_end.append(admission.at_end_of)
    sweeper = Sweeper(engine, queue, utc_now, settings.sweep_interval_s)
    backfills = Backfills(
        database, engine, utc_now, partitions, settings.scan_interval_s, ring_soon
    )
    engine.on_end.append(backfills.run_ended)
    slots = SlotKeeper(database, engine, utc_now, settings.scan_interval_s, ring_soon)
    engine.on_stored.append(slots.stored)
    dependencies = DependencyWatcher(database, engine, utc_now, settings.scan_interval_s, ring_soon)
    engine.on_stored.append(dependencies.stored)
    scanner = Scanner(
        database,
        engine,
        utc_now,
        settings.scan_interval_s,
        settings.scan_batch,
        dict.fromkeys(REQUESTS, backfills.carry_out),
        max_open=settings.max_open_instances,
        ring=ring_soon,
    )
    engine.on_end.append(scanner.run_ended)
    scheduler = Scheduler(
        database, engine, utc_now, partitions, settings.scan_interval_s, ring_soon
    )

    def heard(partition: int) -> None:
        scanner.ring(partition)
        scheduler.look_soon(partition)
        backfills.look_soon(partition)
        slots.look_soon(partition)
        dependencies.look_soon(partition)

    rpc = MasterRpc(engine, utc_now, database, Vault.of(cluster))
    server, address = await start_server(
        tls, lambda s: add_MasterServiceServicer_to_server(rpc, s), settings.host, settings.port
    )
    stack.push_async_callback(server.stop, _STOP_GRACE_S)
    bells = await stack.enter_async_context(Bells(session, heard))
    keeper = PartitionKeeper(session, master_id, address, engine, bells, settings.takeover_delay_s)
    group = Group(
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
        "started_at": utc_now().isoformat(),
    }
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
            ):
                loops.create_task(work(), name=work.__qualname__)
            async with (
                keeper.ownership,
                Membership(session, layout.MASTERS, master_id, about),
                group,
            ):
                loops.create_task(group.wait(), name="group")
                log.info("master ready", master=master_id, address=address)
                await stop.wait()
                log.info("master stopping", partitions=len(engine.epochs))
            raise _Stopped
    except* _Stopped:
        pass


class _Stopped(Exception):
    """The master was told to stop and has left the cluster."""


async def _ring(session: ZkSession, partitions: Iterable[int]) -> None:
    try:
        await ring(session, partitions)
    except ShoalError as error:
        log.debug("bell not rung; the owner looks by itself", error=str(error))
