"""A worker process: open what it needs, run until it is to stop, leave in order."""

import asyncio
import secrets
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress

import structlog

from shoal.coordination.startup import connect_when_there, session_of
from shoal.core.errors import ShoalError
from shoal.proto.channels import Channels
from shoal.proto.server import start_server
from shoal.proto.tls import TlsFiles
from shoal.runtime.limits.descriptors import raise_descriptor_limit
from shoal.runtime.settings import ClusterSettings
from shoal.worker.agent import Lifetime
from shoal.worker.assembly import Foundation, Worker
from shoal.worker.attempts.held import PREFETCH_TIMES, PrefetchTimes
from shoal.worker.home.cluster_file import follow_tree, join_tree
from shoal.worker.home.home import WorkerHome
from shoal.worker.home.spool import Spool
from shoal.worker.intake.capacity import fitting_slots
from shoal.worker.logs.files import LogStore
from shoal.worker.processes.launcher import Launcher
from shoal.worker.processes.program import ExitRecord
from shoal.worker.results.error_line import with_error_line
from shoal.worker.results.reporter import Reporter
from shoal.worker.results.results import lacks_files, of_earlier_life, result, was_interrupted
from shoal.worker.settings import WorkerSettings
from shoal.worker.supervisor.proctree import become_subreaper

log = structlog.get_logger()

_STOP_GRACE_S = 1.0  # for readers of logs when the worker leaves


async def serve(settings: WorkerSettings, cluster: ClusterSettings) -> None:
    """Run one worker until SIGTERM or SIGINT; a second signal ends it at once.

    Raises what ended it otherwise.
    """
    stop, at_once = asyncio.Event(), asyncio.Event()
    become_subreaper()
    descriptors = raise_descriptor_limit()
    settings = settings.model_copy(update={"slots": fitting_slots(settings.slots)})
    with _signals(stop, at_once):
        await run_worker(
            settings, cluster, stop, at_once, adopts_orphans=True, task_descriptors=descriptors
        )


async def run_worker(
    settings: WorkerSettings,
    cluster: ClusterSettings,
    stop: asyncio.Event,
    at_once: asyncio.Event,
    *,
    adopts_orphans: bool = False,
    task_descriptors: int | None = None,
    prefetch_times: PrefetchTimes = PREFETCH_TIMES,
) -> None:
    """Run one worker until ``stop``; ``at_once`` cuts the leaving short.

    ``adopts_orphans``, ``task_descriptors``: see Launcher.
    """
    lifetime = Lifetime(stop, at_once)
    async with AsyncExitStack() as stack:
        home = WorkerHome(cluster.data, settings)
        await asyncio.to_thread(home.__enter__)
        stack.push(home.__exit__)
        spool = Spool(home.folders.spool)
        launcher = Launcher(
            on_stored=spool.note,
            held_fds=[home.processes_fd],
            adopts_orphans=adopts_orphans,
            task_descriptors=task_descriptors,
            cgroup=home.cgroup,
        )
        working = asyncio.create_task(
            _run(settings, cluster, home, spool, launcher, stack, lifetime, prefetch_times)
        )
        leaving = asyncio.create_task(_cancel_unready(working, lifetime))
        try:
            await working
        except asyncio.CancelledError:
            if lifetime.ready.is_set() or not stop.is_set():
                raise
            log.info("worker stopped before it was ready", worker=home.name)
        except Exception as failure:
            cause: Exception = failure
            while isinstance(cause, ExceptionGroup):  # of the tasks that belong together
                cause = cause.exceptions[0]
            trace = None if isinstance(cause, ShoalError) else failure  # its text says all
            log.error("worker failed", worker=home.name, error=str(cause), exc_info=trace)
            raise cause from failure
        finally:
            working.cancel()
            leaving.cancel()


async def _cancel_unready(working: "asyncio.Task[None]", lifetime: Lifetime) -> None:
    """Nothing has begun before the worker is registered, so stopping needs no order yet."""
    await lifetime.stop.wait()
    if not lifetime.ready.is_set():
        working.cancel()


async def _run(
    settings: WorkerSettings,
    cluster: ClusterSettings,
    home: WorkerHome,
    spool: Spool,
    launcher: Launcher,
    stack: AsyncExitStack,
    lifetime: Lifetime,
    prefetch_times: PrefetchTimes,
) -> None:
    worker_id = f"{home.name}-{secrets.token_hex(4)}"  # unique for each start
    session = await connect_when_there(lambda: session_of(cluster, worker_id))
    stack.push_async_exit(session)
    keeper = await join_tree(
        session, home.cluster, spool, cluster.partitions, rebind=cluster.rebind
    )
    await stack.enter_async_context(keeper)
    tls = TlsFiles.of(cluster)
    channels = await stack.enter_async_context(Channels(tls))
    # Entered last, closed first: the processes are dead before the session with the claims ends.
    await stack.enter_async_context(launcher)
    base = Foundation(
        settings=settings,
        home=home,
        worker_id=worker_id,
        session=session,
        partitions=keeper.partitions,
        channels=channels,
        launcher=launcher,
        spool=spool,
        resources_url=cluster.resources,
        logs_url=cluster.logs_url,
        prefetch_times=prefetch_times,
    )
    belongs = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(
            follow_tree(session, home.cluster, keeper, belongs), name="tree of this cluster"
        )
        await belongs.wait()
        worker = Worker(base, tasks, lifetime)
        server, address = await start_server(tls, worker.register, settings.host, settings.port)
        try:
            await report_leftovers(spool, worker.store, worker.reporter)
            await worker.run(address)
        finally:
            following.cancel()
            await worker.close()
            await server.stop(_STOP_GRACE_S)


async def report_leftovers(spool: Spool, store: LogStore, reporter: Reporter) -> None:
    """Report the results that an earlier life of this worker could not hand over."""
    for entry in await asyncio.to_thread(spool.pending):
        try:
            record = of_earlier_life(ExitRecord.from_json(entry.record))
            result(record)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            with suppress(OSError):  # the next start tries again
                await asyncio.to_thread(spool.quarantine, entry, error)
            continue
        if was_interrupted(record) or lacks_files(record):
            with suppress(OSError):  # the next start tries again
                await asyncio.to_thread(spool.remove, entry.id)
        else:
            log.info("result from before the restart", task_instance=entry.id)
            reporter.add(*result(await with_error_line(record, store)))


@contextmanager
def _signals(stop: asyncio.Event, at_once: asyncio.Event) -> Iterator[None]:
    """Turn SIGTERM and SIGINT into ``stop``, the second one into ``at_once``."""

    def received(number: signal.Signals) -> None:
        log.info("signal received", signal=number.name, at_once=stop.is_set())
        (at_once if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, received, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
