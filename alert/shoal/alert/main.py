"""An alert server: open what it works with, share the jobs with the others, leave in order."""

import asyncio
import contextlib
import os
import signal
import socket
import uuid
from datetime import timedelta

import structlog

from shoal.alert.conditions.cluster import ClusterConditions
from shoal.alert.conditions.watcher import WATCHING, Watcher
from shoal.alert.jobs.epochs import epoch_in_database
from shoal.alert.jobs.event_reader import EventReader
from shoal.alert.jobs.reminders import ATTENTION, Reminders
from shoal.alert.jobs.sender import AlertSender, ChannelSecrets
from shoal.alert.settings import AlertSettings
from shoal.coordination import (
    BalancedJobs,
    ClusterClock,
    GroupSettings,
    Members,
    bind_tree,
)
from shoal.coordination.cluster import layout
from shoal.coordination.startup import connect_when_there, session_of
from shoal.core.alerts.shares import ALERT_GROUP, SHARES, job_of
from shoal.core.errors import ShoalError
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.side.process import SideProcesses
from shoal.runtime.side.templates import Templates
from shoal.runtime.vault import Vault
from shoal.sql import Database, Patience
from shoal.sql.repositories.alerts.jobs import READING
from shoal.sql.startup import migrate_when_there, when_there
from shoal.sql.tree_binding import TreeBinding

log = structlog.get_logger()

_IDLE_POLL_S = 2.0  # while nothing is defined
_COMPANIONS_S = 0.5  # that the first server waits for others before it takes all jobs
_PAUSE_S = 1.0  # before a job goes on that the database has failed


async def serve(
    settings: AlertSettings, cluster: ClusterSettings, stop: asyncio.Event | None = None
) -> None:
    """Run one alert server until ``stop`` is set (None: until SIGTERM or SIGINT).

    Raises what ended it otherwise.
    """
    if stop is None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server_id = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    working = asyncio.create_task(_work(settings, cluster, server_id), name="alert server")
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.wait({working})
    if not (working.cancelled() and stop.is_set()):
        working.result()
    log.info("alert server stopped", server=server_id)


async def _work(settings: AlertSettings, cluster: ClusterSettings, server_id: str) -> None:
    stores = SecretStores.of(cluster)  # first of all: wrong settings are reported at once
    async with contextlib.AsyncExitStack() as stack:
        patience = Patience.of(cluster.database_silence_s)
        database = await stack.enter_async_context(Database(cluster.database, patience=patience))
        await migrate_when_there(database)
        # Where nothing was ever defined, no notification is due and nothing else is read.
        await _until_defined(database)
        session = await connect_when_there(lambda: session_of(cluster, server_id))
        stack.push_async_exit(session)
        store = TreeBinding(database)
        tree = await bind_tree(session, cluster.partitions, store, rebind=cluster.rebind)
        uid = tree.binding.cluster
        clock = await stack.enter_async_context(ClusterClock(session, database.clocks))
        resolver = Resolver(stores)
        stack.push_async_callback(resolver.aclose)
        secrets = ChannelSecrets(database, Vault.of(cluster), resolver)
        templates = Templates(await stack.enter_async_context(SideProcesses()))
        senders = {job_of(share): share for share in range(SHARES)}
        keep = timedelta(days=settings.keep_alerts_days) if settings.keep_alerts_days else None

        workers = await stack.enter_async_context(Members(session, layout.WORKERS))
        masters = await stack.enter_async_context(Members(session, layout.MASTERS))
        conditions = ClusterConditions(database, session, workers, masters, cluster.tls_cert, clock)

        async def do(job: str, turn: int) -> None:
            epoch = await epoch_in_database(database, shared, job, turn)
            if job == READING:
                await EventReader(database, epoch, settings.poll_s, clock).run()
            elif job == ATTENTION:
                await Reminders(database, epoch, settings.poll_s, clock, keep).run()
            elif job == WATCHING:
                await Watcher(database, epoch, settings.watch_s, clock, conditions).run()
            else:
                share = senders[job]
                await AlertSender(
                    database=database,
                    share=share,
                    epoch=epoch,
                    settings=settings,
                    clock=clock,
                    secrets=secrets,
                    cluster=uid,
                    templates=templates,
                ).run()

        async def run(job: str, epoch: int) -> None:
            while True:
                try:
                    return await do(job, epoch)
                except ShoalError as error:
                    if not error.retriable:
                        raise
                    log.warning("a job waits", job=job, error=str(error))
                await asyncio.sleep(_PAUSE_S)

        jobs = [READING, ATTENTION, WATCHING, *senders]
        log.info("alert server started", server=server_id)
        group = GroupSettings(initial_rebalance_delay_s=_COMPANIONS_S)
        shared = BalancedJobs(session, ALERT_GROUP, server_id, jobs, run, settings=group)
        async with shared:
            await shared.wait()


async def _until_defined(database: Database) -> None:
    """Return once a rule, a receiver or a channel was ever defined."""
    while True:
        if await when_there(database, lambda: _changes(database)):
            return
        await asyncio.sleep(_IDLE_POLL_S)


async def _changes(database: Database) -> int:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.alert_jobs.changes()
