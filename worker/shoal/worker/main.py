"""A worker process: put the parts together, run until told to stop, leave in order."""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import grpc.aio
import structlog

from shoal.coordination import Membership, Owners, TaskQueue, TreeKeeper, ZkSession, prepare
from shoal.coordination.cluster import layout
from shoal.coordination.starting import connect_when_there
from shoal.proto.channels import Channels
from shoal.proto.server import start_server
from shoal.proto.shoal_pb2_grpc import (
    add_LogServiceServicer_to_server,
    add_WorkerServiceServicer_to_server,
)
from shoal.proto.tls import TlsFiles
from shoal.runtime.settings import ClusterSettings
from shoal.worker.agent import Agent
from shoal.worker.attempts import Attempts
from shoal.worker.execution.attempt import ExitRecord
from shoal.worker.execution.launching import Launcher
from shoal.worker.execution.runner import Runner, Surroundings
from shoal.worker.execution.starting import Starting
from shoal.worker.home.home import WorkerHome
from shoal.worker.intake.capacity import fitting_slots, raise_descriptor_limit
from shoal.worker.intake.claims import Claimer
from shoal.worker.intake.disk import DiskGuard
from shoal.worker.intake.eager_dispatch import EagerDispatch
from shoal.worker.intake.fetching import Fetcher
from shoal.worker.intake.reachability import Reachability
from shoal.worker.logs.asking import Asking
from shoal.worker.logs.files import LogStore
from shoal.worker.logs.keeping import LogKeeper
from shoal.worker.logs.limit import LogLimit
from shoal.worker.logs.service import LogService
from shoal.worker.masters import Masters
from shoal.worker.results.reporting import Reporter
from shoal.worker.results.results import result, was_interrupted
from shoal.worker.results.spool import Spool
from shoal.worker.service import WorkerService
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
) -> None:
    """Run one worker until ``stop``; ``at_once`` cuts the leaving short.

    ``adopts_orphans``, ``task_descriptors``: see Launcher.
    """
    async with AsyncExitStack() as stack:
        home = WorkerHome(cluster.data, settings)
        await asyncio.to_thread(home.__enter__)
        stack.push(home.__exit__)
        ready = asyncio.Event()
        spool = Spool(home.folders.spool)
        launcher = Launcher(
            on_stored=spool.note,
            held_fds=[home.processes_fd],
            adopts_orphans=adopts_orphans,
            task_descriptors=task_descriptors,
        )
        working = asyncio.create_task(
            _run(settings, cluster, home, spool, launcher, stack, stop, at_once, ready)
        )
        leaving = asyncio.create_task(_cancel_unready(working, stop, ready))
        try:
            await working
        except asyncio.CancelledError:
            if ready.is_set() or not stop.is_set():
                raise
            log.info("worker stopped before it was ready", worker=home.name)
        except Exception as failure:
            cause = _first_cause(failure)
            log.error("worker failed", worker=home.name, error=str(cause), exc_info=failure)
            raise cause from failure
        finally:
            working.cancel()
            leaving.cancel()


async def _cancel_unready(
    working: "asyncio.Task[None]", stop: asyncio.Event, ready: asyncio.Event
) -> None:
    """Nothing has begun before the worker is registered, so stopping needs no order yet."""
    await stop.wait()
    if not ready.is_set():
        working.cancel()


async def _run(
    settings: WorkerSettings,
    cluster: ClusterSettings,
    home: WorkerHome,
    spool: Spool,
    launcher: Launcher,
    stack: AsyncExitStack,
    stop: asyncio.Event,
    at_once: asyncio.Event,
    ready: asyncio.Event,
) -> None:
    worker_id = f"{home.name}-{secrets.token_hex(4)}"  # unique for each start
    tls = TlsFiles.of(cluster)
    session = await connect_when_there(
        lambda: ZkSession(
            cluster.zookeeper,
            session_timeout_s=cluster.session_timeout_s,
            name=worker_id,
            credential=cluster.zookeeper_credential,
        )
    )
    stack.push_async_exit(session)
    partitions = await prepare(session, cluster.partitions)
    await stack.enter_async_context(TreeKeeper(session, partitions))
    channels = await stack.enter_async_context(Channels(tls))
    # Entered last, closed first: the processes are dead before the session with the claims ends.
    await stack.enter_async_context(launcher)
    queue, attempts = TaskQueue(session), Attempts(settings.slots)
    masters = Masters(Owners(session), channels)
    log_limit = LogLimit(attempts, settings.log_limit_mb)
    store = LogStore(home.folders.logs, log_limit.limit)
    folders = (home.folders.work, home.folders.logs, home.folders.spool)
    disk = DiskGuard(folders, settings.min_free_mb)
    surroundings = Surroundings(
        worker_id=worker_id,
        work_root=home.folders.work,
        store=store,
        spool=spool,
        worker_env=dict(os.environ),
        env_pass=settings.env_pass,
        kill_grace_s=settings.kill_grace_s,
    )
    log_keeper = LogKeeper(
        store.root,
        home.folders.work,
        home.folders.spool,
        attempts,
        Asking(masters, partitions),
        settings.log_retention_days,
        settings.min_free_mb,
        home.former_logs,
    )
    about = _about(settings, home)
    async with asyncio.TaskGroup() as tasks:
        reachability = Reachability(
            masters, tasks, cluster.partitions, lambda: _leave_to_others(reachability, queue, agent)
        )
        starting = Starting(launcher, tasks, lambda: _pause(starting, runner, agent))
        agent = Agent(
            settings,
            session,
            queue,
            launcher,
            attempts,
            tasks,
            disk,
            log_limit,
            masters,
            reachability,
            starting,
            log_keeper,
            about,
        )
        eager_dispatch = EagerDispatch(
            session,
            queue,
            attempts,
            tasks,
            group=settings.group,
            worker_id=worker_id,
            room=lambda: (
                None if stop.is_set() or disk.shortage or starting.shortage else attempts.room
            ),
            start=lambda attempt, payload: runner.start(attempt, payload),
            fetch=lambda granted: fetcher.fetch(granted),
            interrupt=lambda attempt, reason: runner.interrupt(attempt, reason),
        )
        attempts.on_forget = eager_dispatch.forgotten
        reporter = Reporter(
            masters, lambda report, committed: runner.settled(report, committed), eager_dispatch
        )
        reporter.in_no_hurry = lambda: attempts.has_enough
        runner = Runner(
            surroundings,
            attempts,
            launcher,
            reporter,
            tasks,
            log_limit,
            starting,
            renew_lease=agent.renew_lease,
            is_present=lambda claim: claim.generation == session.generation,
            drop_claims=agent.drop_claims,
            requeue=agent.requeue,
        )
        fetcher = Fetcher(tasks, masters, worker_id, runner.start, runner.refuse)
        claimer = Claimer(
            session,
            queue,
            masters,
            attempts,
            disk,
            reachability,
            starting,
            group=settings.group,
            worker_id=worker_id,
            on_payload=runner.start,
            on_refused=runner.refuse,
        )

        service = WorkerService(worker_id, queue, attempts, runner, eager_dispatch)

        def register(server: grpc.aio.Server) -> None:
            add_WorkerServiceServicer_to_server(service, server)
            add_LogServiceServicer_to_server(LogService(store, attempts), server)

        server, address = await start_server(tls, register, settings.host, settings.port)
        about["address"] = address
        try:
            await report_leftovers(spool, reporter)
            await disk.look()  # before the first claim
            member = Membership(session, layout.WORKERS, worker_id, agent.member_data)
            await agent.run(member, claimer, reporter, runner, stop, at_once, ready)
        finally:
            reachability.close()
            starting.close()
            await server.stop(_STOP_GRACE_S)


def _pause(starting: Starting, runner: Runner, agent: Agent) -> None:
    """Room for processes has come or gone."""
    if starting.shortage:
        runner.requeue_waiting()
    agent.tell_soon()


def _leave_to_others(reachability: Reachability, queue: TaskQueue, agent: Agent) -> None:
    """Masters have fallen silent, or answer again."""
    queue.leave_out(reachability.partitions)
    agent.tell_soon()


async def report_leftovers(spool: Spool, reporter: Reporter) -> None:
    """Report the results that an earlier life of this worker could not hand over."""
    for entry in await asyncio.to_thread(spool.pending):
        try:
            record = ExitRecord.from_json(entry.record)
            reported = result(record)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("spool file is no result", entry=entry.id, error=repr(error))
            continue
        if was_interrupted(record):
            with suppress(OSError):  # the next start tries again
                await asyncio.to_thread(spool.remove, entry.id)
        else:
            log.info("result from before the restart", task_instance=entry.id)
            reporter.add(*reported)


def _about(settings: WorkerSettings, home: WorkerHome) -> dict[str, Any]:
    return {
        "address": "",
        "group": settings.group,
        "slots": settings.slots,
        "name": home.name,  # the same after a restart, unlike the id
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started_at": datetime.now(UTC).isoformat(),
    }


@contextmanager
def _signals(stop: asyncio.Event, at_once: asyncio.Event) -> Iterator[None]:
    """Turn SIGTERM and SIGINT into ``stop``, the second one into ``at_once``."""

    def told(number: signal.Signals) -> None:
        log.info("signal received", signal=number.name, at_once=stop.is_set())
        (at_once if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, told, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _first_cause(failure: Exception) -> Exception:
    """Return the first error in a group that is not a group itself."""
    return _first_cause(failure.exceptions[0]) if isinstance(failure, ExceptionGroup) else failure
