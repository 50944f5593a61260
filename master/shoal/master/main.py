"""A master process: open what it works with, run until stopped, leave in order."""

import asyncio
import contextlib
import os
import signal
import socket
import uuid

import structlog

from shoal.coordination import ClusterClock, TreeKeeper, bind_tree
from shoal.coordination.startup import connect_when_there, session_of
from shoal.master.composition import Opened, work
from shoal.master.membership.lost_commits import LostCommits
from shoal.master.settings import MasterSettings, UpkeepTimes
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import Vault, is_ciphertext, key_of
from shoal.sql import Database, Patience
from shoal.sql.startup import migrate_when_there, when_there
from shoal.sql.tree_binding import TreeBinding

log = structlog.get_logger()


async def serve(
    settings: MasterSettings,
    cluster: ClusterSettings,
    stop: asyncio.Event | None = None,
    upkeep: UpkeepTimes | None = None,
) -> None:
    """Run one master until ``stop`` is set (None: until SIGTERM or SIGINT).

    ``upkeep``: when periodic jobs run, None: at the usual times. Raises what ended it otherwise.
    """
    if stop is None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    master_id = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    opened = asyncio.Event()

    async def open_and_work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            # It waits for what is away.
            parts = await _open(stack, settings, cluster, master_id, upkeep or UpkeepTimes())
            opened.set()
            await work(stack, parts, stop)

    working = asyncio.create_task(open_and_work(), name="master")
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if opened.is_set():  # it heeds ``stop`` from then on, and leaves in order
            await asyncio.wait({working})
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.wait({working})
    if not (working.cancelled() and stop.is_set()):
        try:
            working.result()
        except ExceptionGroup as failure:
            raise _first_cause(failure) from failure
    log.info("master stopped", master=master_id)


async def _open(
    stack: contextlib.AsyncExitStack,
    settings: MasterSettings,
    cluster: ClusterSettings,
    master_id: str,
    upkeep: UpkeepTimes,
) -> Opened:
    stores = SecretStores.of(cluster)  # first of all: wrong settings are reported at once
    patience = Patience.of(cluster.database_silence_s)
    database = await stack.enter_async_context(Database(cluster.database, patience=patience))
    await migrate_when_there(database)
    session = await connect_when_there(lambda: session_of(cluster, master_id))
    stack.push_async_exit(session)
    # Before anything is taken: tree and database are those of one cluster.
    store = TreeBinding(database)
    tree = await bind_tree(session, cluster.partitions, store, rebind=cluster.rebind)
    keeper = await stack.enter_async_context(TreeKeeper(session, tree.partitions, tree.binding))

    async def register() -> None:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(tree.partitions)
            await uow.commit()

    await when_there(database, register)
    vault = Vault.of(cluster)
    await when_there(database, lambda: require_keys(database, vault))
    clock = await stack.enter_async_context(ClusterClock(session, database.clocks))
    # Before anything is started: a database that has lost commits would give their ids again.
    lost_commits = LostCommits(database, session, tree.binding.cluster, clock)
    await when_there(database, lambda: session.retry(lost_commits.look))
    resolver = Resolver(stores)
    stack.push_async_callback(resolver.aclose)
    return Opened(
        master_id=master_id,
        settings=settings,
        cluster=cluster,
        database=database,
        session=session,
        clock=clock,
        tree=tree,
        tree_keeper=keeper,
        lost_commits=lost_commits,
        vault=vault,
        resolver=resolver,
        upkeep=upkeep,
    )


async def require_keys(database: Database, vault: Vault) -> None:
    """Return if all that is encrypted can be decrypted here, or there is nothing.

    A master without a key would let tasks fail that the others can start. Raises NoSecretsKey,
    KeyFileOpen, UnknownKey, SqlError.
    """
    async with database.unit_of_work(read_only=True) as uow:
        state = await uow.sealing.state()
        stored = await uow.sealing.ciphertexts()
    # What cannot be read fails the tasks that use it, and stops nothing else.
    used = {key_of(one) for one in stored if is_ciphertext(one)}
    needed = {key for key in (*used, state.primary, state.next) if key is not None}
    if used or needed:
        await asyncio.to_thread(vault.require, needed)


def _first_cause(failure: Exception) -> Exception:
    """Return the first error in a group that is not a group itself."""
    return _first_cause(failure.exceptions[0]) if isinstance(failure, ExceptionGroup) else failure
