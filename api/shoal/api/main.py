"""An API process: bind, put the parts together, serve until stopped, leave in order."""

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from functools import partial
from typing import cast

import structlog
import uvicorn

from shoal.api.access.audit import Auditor
from shoal.api.access.callers import HomeCache
from shoal.api.access.control import AccessControl
from shoal.api.access.failed_logins import FailedLogins
from shoal.api.access.first_admin import make_first_admin, show
from shoal.api.access.identities import Identities
from shoal.api.access.one_time import OneTimeCodes
from shoal.api.access.passwords import Passwords
from shoal.api.access.sessions import BrowserSessions
from shoal.api.access.tokens import ensure_token
from shoal.api.app import create_app
from shoal.api.federation.issuers import open_federation
from shoal.api.operations.cluster.ownership import OwnershipWatch
from shoal.api.operations.cluster.view import ClusterView
from shoal.api.operations.data_sources import Prober
from shoal.api.operations.feed import Feed
from shoal.api.operations.intake import Intake
from shoal.api.operations.logs import LogProxy
from shoal.api.operations.resources import ResourceFiles
from shoal.api.operations.runs.progress import ProgressReader
from shoal.api.operations.secrets.values import SecretValues
from shoal.api.server import BACKLOG, KEEP_ALIVE_S, Server, check_certificate, listening
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.api.web.allowances import Allowance
from shoal.api.web.connections import Connections, Networks
from shoal.api.web.forwarded import behind_proxies
from shoal.api.web.sse import Streams
from shoal.api.web.store import Store
from shoal.api.web.turns import MOST_AT_ONCE
from shoal.coordination import background
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.binding import bind_tree
from shoal.coordination.cluster.cluster_clock import ClusterClock
from shoal.coordination.cluster.membership import Members
from shoal.coordination.cluster.owners import Owners
from shoal.coordination.cluster.tree import TreeKeeper
from shoal.coordination.queue import TaskQueue
from shoal.coordination.session.loop_lag import LoopLag
from shoal.coordination.startup import connect_when_there, session_of
from shoal.core.definition.model import WorkflowSpec
from shoal.insight.past.client import PastRuns
from shoal.proto.channels import Channels
from shoal.proto.tls import TlsFiles
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.side.process import SideProcesses
from shoal.runtime.side.templates import Templates
from shoal.runtime.storage import Storage, StorageLimits
from shoal.runtime.vault import Vault
from shoal.sql import Database, Patience
from shoal.sql.repositories.upkeep.cluster import ClusterNames
from shoal.sql.startup import migrate_when_there, when_there
from shoal.sql.tree_binding import TreeBinding

log = structlog.get_logger()


async def serve(
    settings: ApiSettings,
    cluster: ClusterSettings,
    *,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the API until SIGTERM or SIGINT. ``ready`` gets the URL once it answers.

    Raises CannotServe, and what keeps database and ZooKeeper away.
    """
    stopping, opened = asyncio.Event(), asyncio.Event()
    check_certificate(settings)
    with _stop_signals(stopping), listening(settings) as listener:
        token = ensure_token(cluster.token_file)

        async def work() -> None:
            async with AsyncExitStack() as stack:
                services = await open_services(stack, settings, cluster, token, stopping)
                opened.set()
                if settings.first_admin:
                    store, passwords = services.store, services.access.passwords
                    password = await when_there(
                        store.database,
                        lambda: make_first_admin(store.database, passwords, store.clock),
                    )
                    if password:
                        show(password, cluster.data)
                await serve_app(services, listener, ready)

        await _until_stopped(work(), stopping, opened)
    log.info("api stopped")


async def _until_stopped(
    work: Coroutine[None, None, None], stopping: asyncio.Event, opened: asyncio.Event
) -> None:
    """Run ``work``, which ends by ``stopping`` once it has ``opened``; before, cancel it."""
    working = asyncio.create_task(work, name="api")
    told = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({working, told}, return_when=asyncio.FIRST_COMPLETED)
        if opened.is_set():
            await asyncio.wait({working})
    finally:
        told.cancel()
        working.cancel()
        await asyncio.wait({working})
    if not (working.cancelled() and stopping.is_set()):
        working.result()


async def open_services(
    stack: AsyncExitStack,
    settings: ApiSettings,
    cluster: ClusterSettings,
    token: str,
    stopping: asyncio.Event,
) -> Services:
    """Open everything; ``stack`` closes it in the reverse order."""
    stores = SecretStores.of(cluster)
    federation = await open_federation(stack, settings)
    tls = TlsFiles.of(cluster)
    patience = Patience.of(cluster.database_silence_s)
    database = await stack.enter_async_context(Database(cluster.database, patience=patience))
    await migrate_when_there(database)
    session = await connect_when_there(lambda: session_of(cluster, "api"))
    stack.push_async_exit(session)
    store = TreeBinding(database)
    tree = await bind_tree(session, cluster.partitions, store, rebind=cluster.rebind)
    partitions, uid = tree.partitions, tree.binding.cluster
    keeper = await stack.enter_async_context(TreeKeeper(session, partitions, tree.binding))

    async def register() -> ClusterNames:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(partitions)
            if not await uow.projects.list(limit=1):  # for what names no project
                await uow.projects.ensure(WorkflowSpec.model_fields["project"].default)
            names = await uow.cluster.names()
            await uow.commit()
        return names

    names = await when_there(database, register)
    clock = await stack.enter_async_context(ClusterClock(session, database.clocks))
    masters = await stack.enter_async_context(Members(session, layout.MASTERS))
    workers = await stack.enter_async_context(Members(session, layout.WORKERS))
    owners = Owners(session)
    ownership = await stack.enter_async_context(
        OwnershipWatch(owners, database, keeper, partitions, cluster.session_timeout_s)
    )
    lag = LoopLag()
    stack.push_async_callback(background.stop, background.start(lag.run(), "lag of the event loop"))
    channels = await stack.enter_async_context(Channels(tls))
    rate = Allowance("commands", settings.commands_per_minute, settings.commands_at_once)
    intake = await stack.enter_async_context(Intake(database, session, clock, rate))
    idle = timedelta(minutes=settings.session_idle_minutes)
    identities = Identities(database, clock, token, idle)
    stack.push_async_callback(identities.aclose)
    auditor = await stack.enter_async_context(Auditor(database, clock))
    passwords = Passwords()
    stack.callback(passwords.close)
    past = PastRuns(cluster.history_url, uid, partial(_exports, database))
    stack.push_async_callback(past.aclose)
    processes = await stack.enter_async_context(SideProcesses())
    large_work = await stack.enter_async_context(SideProcesses(MOST_AT_ONCE))
    return Services(
        settings=settings,
        data=cluster.data,
        token=token,
        store=Store(database, clock),
        access=AccessControl(
            identities=identities,
            homes=HomeCache(database, past),
            passwords=passwords,
            failed_logins=FailedLogins(),
            auditor=auditor,
            sessions=BrowserSessions(auditor, timedelta(hours=settings.session_hours), idle),
            one_time=OneTimeCodes(),
        ),
        federation=federation,
        cluster=ClusterView(
            session=session,
            clock=clock,
            partitions=partitions,
            masters=masters,
            workers=workers,
            owners=owners,
            ownership=ownership,
            queue=TaskQueue(session),
            lag=lag,
            since=clock(),
        ),
        feed=Feed(database, settings.subscriber_events),
        streams=Streams(stopping, settings.heartbeat_s, settings.streams_per_caller),
        intake=intake,
        logs=LogProxy(
            database, workers, channels, names, LogArchive.of(cluster, uid, names.of_attempt)
        ),
        progress=ProgressReader(workers, channels),
        prober=Prober(workers, channels),
        past=past,
        files=ResourceFiles(database, Storage.of(cluster), StorageLimits.of(cluster), clock, uid),
        secret_values=SecretValues(Vault.of(cluster), stores),
        processes=processes,
        large_work=large_work,
        templates=Templates(processes),
    )


async def _exports(database: Database) -> int:
    """Return how many exports of the history the database knows of."""
    async with database.unit_of_work(read_only=True) as uow:
        return (await uow.history_exports.last()).sequence


async def serve_app(
    services: Services, listener: socket.socket, ready: Callable[[str], None] | None = None
) -> None:
    """Serve on ``listener`` until ``services.streams.stopping``; ``ready`` gets the URL.

    Raises CredentialRefused when ZooKeeper refuses the credential meanwhile.
    """
    settings = services.settings
    connections = Connections(
        settings.connections_per_address, Networks.of(settings.trusted_proxies)
    )
    config = uvicorn.Config(
        behind_proxies(create_app(services), settings.trusted_proxies),
        http=cast("type[asyncio.Protocol]", connections.protocol),
        ws="none",
        lifespan="on",
        log_config=None,  # logging is set up by the process that runs this role
        access_log=False,  # our own middleware logs requests
        server_header=False,
        proxy_headers=False,  # see behind_proxies
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.shutdown_grace_s)),
    )
    server = Server(config, connections)
    serving = asyncio.create_task(server.serve([listener]), name="http server")
    told = asyncio.create_task(services.streams.stopping.wait())
    # Nothing repairs the session of this process: its supervisor has to start another one.
    failed = asyncio.create_task(services.cluster.session.failed(), name="session")
    try:
        await server.has_started(serving)
        host, port = listener.getsockname()[:2]
        scheme = "https" if services.settings.has_tls else "http"
        url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        log.info("api ready", url=url)
        if ready is not None:
            ready(url)
        await asyncio.wait({serving, told, failed}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Open streams end by themselves now, so the server finds its connections idle.
        services.streams.stopping.set()
        server.stop()
        told.cancel()
        await serving
        if not failed.done():
            failed.cancel()
    if failed.done() and not failed.cancelled():
        failed.result()


@contextmanager
def _stop_signals(stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
