"""The Spark Connect servers of a worker: one for each project whose tasks ask for it.

Projects do not share one, since users of a server can see its files, its catalogue and its global
views. A server is started when it is asked for first, and ended when it was unused for long.

======================  ====================================================================
it does not start       those who wait for it fail with what it said
it was unused           it is stopped; also when another project needs its place
it ends by itself       of several users all are interrupted, so that they run again: one of them
                        may have been too much for it. A single user sees that its server is gone.
it does not respond      it is ended, which is the row above
======================  ====================================================================
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

import structlog

from shoal.core.errors import ShoalError
from shoal.core.task_types import SparkConnect
from shoal.worker.attempts.held import HeldAttempt
from shoal.worker.processes.launcher import Launcher
from shoal.worker.spark.command import Profile
from shoal.worker.spark.server import MOST_SILENT, SparkServerFailed, SparkServerProcess
from shoal.worker.types.spark.command import find_spark, require_java

CHECK_EVERY_S = 5.0
# Long after its user has left, Spark submits no job of a statement that was interrupted.
_JOBS_AFTER_S = 60.0

log = structlog.get_logger()


class NoSparkServers(ShoalError):
    """This worker keeps no Spark Connect servers."""

    def __init__(self) -> None:
        super().__init__(
            "this worker keeps no Spark Connect servers (its setting spark_servers is 0): give "
            "the data source a host, or let a worker group run the task that has them"
        )


class _Kept:
    """A server and its users. ``ready`` is done when it has started, or has not."""

    def __init__(self, server: SparkServerProcess) -> None:
        self.server = server
        self.users: dict[HeldAttempt, str] = {}  # each with its session
        self.left: dict[str, float] = {}  # sessions whose users have left, and when
        self.idle_since = time.monotonic()
        self.ready: asyncio.Future[SparkConnect] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.leave = asyncio.Event()  # set: its place is needed

    @property
    def is_idle(self) -> bool:
        return self.ready.done() and not self.users

    async def end_jobs_of_others(self) -> None:
        """End what the server still works on for users that have left."""
        long_ago = time.monotonic() - _JOBS_AFTER_S
        self.left = {session: when for session, when in self.left.items() if when > long_ago}
        if self.left:
            # A program may have had more sessions than we know.
            await self.server.end_jobs(lambda session: not self.users or session in self.left)


class SparkServers:
    """Belongs to the event loop; runs in ``tasks``. At most ``most`` servers live at a time."""

    def __init__(
        self,
        root: Path,
        launcher: Launcher,
        tasks: asyncio.TaskGroup,
        profile: Profile,
        *,
        most: int,
        idle_s: float,
        worker_env: Mapping[str, str],
    ) -> None:
        self._root, self._launcher, self._tasks = root, launcher, tasks
        self._profile, self._env = profile, worker_env
        self._most, self._idle_s = most, idle_s
        self._kept: dict[str, _Kept] = {}  # by project, until nothing of it is left
        self._keeping: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()  # replaced when it is set
        self._interrupt: Callable[[HeldAttempt, str], None] = lambda attempt, why: None

    def subscribe(self, interrupt: Callable[[HeldAttempt, str], None]) -> None:
        """Have ``interrupt`` called with each user of a server that has died, and why."""
        self._interrupt = interrupt

    def describe(self) -> str:
        """Return what kind of servers this worker has. Blocks. Raises NoSparkServers, CannotRun."""
        if self._most < 1:
            raise NoSparkServers
        require_java()
        home = find_spark()
        return (
            f"the worker keeps a Spark Connect server for the project: Spark in {home}, on "
            f"{self._profile.master}, {self._profile.memory_mb} MiB"
        )

    def is_ready(self, project: str) -> bool:
        """Return whether the project's server is there already."""
        kept = self._kept.get(project)
        return kept is not None and kept.ready.done() and not kept.leave.is_set()

    def used_by(self, attempt: HeldAttempt) -> SparkConnect | None:
        """Return the living server that ``attempt`` uses."""
        for kept in self._kept.values():
            if attempt in kept.users and kept.ready.done():
                return kept.ready.result()
        return None

    async def use(self, attempt: HeldAttempt, project: str, session: str) -> SparkConnect:
        """Return the project's server; ``attempt`` uses it until it is over.

        Its session, which has the id ``session``, is closed then.

        Waits for a place among the servers. Raises NoSparkServers, SparkServerFailed, CannotRun,
        LauncherDied, LauncherUnavailable, LaunchFailed, OSError.
        """
        if self._most < 1:
            raise NoSparkServers
        while (kept := self._of(project)) is None:
            await self._changed.wait()
        kept.users[attempt] = session
        try:
            found = await asyncio.shield(kept.ready)
        except BaseException:
            self._leave(kept, attempt)
            raise
        self._keep_task(self._until_over(kept, attempt))
        return found

    async def close(self) -> None:
        """End all servers; return when nothing of them is left."""
        self._most = 0
        for kept in self._kept.values():
            kept.leave.set()
        while self._kept:
            await self._changed.wait()
        for task in self._keeping:
            task.cancel()

    def _of(self, project: str) -> _Kept | None:
        """Return the project's server, perhaps a new one; None: there is no place for it yet."""
        if (kept := self._kept.get(project)) is not None:
            return None if kept.leave.is_set() else kept
        if len(self._kept) >= self._most:
            idle = [one for one in self._kept.values() if one.is_idle]
            if idle and not any(one.leave.is_set() for one in idle):
                min(idle, key=lambda one: one.idle_since).leave.set()
            return None
        folder = self._root / f"spark-{uuid.uuid4().hex}"
        server = SparkServerProcess(project, folder, self._profile, self._launcher, self._env)
        kept = self._kept[project] = _Kept(server)
        self._keep_task(self._keep(kept))
        return kept

    async def _keep(self, kept: _Kept) -> None:
        """The life of a server."""
        server = kept.server
        try:
            try:
                kept.ready.set_result(await self._started(kept))
            except (ShoalError, OSError) as error:
                log.warning("Spark Connect server failed", project=server.project, error=str(error))
                kept.ready.set_exception(error)
                return
            why = await self._until_end(kept)
        finally:
            kept.ready.cancel()
            del self._kept[server.project]
            self._notify()
        if why is not None:
            log.warning("Spark Connect server died", project=server.project, why=why)
        if why is not None and len(kept.users) > 1:
            for attempt in kept.users:
                self._interrupt(attempt, f"the Spark Connect server that it shared died: {why}")

    async def _started(self, kept: _Kept) -> SparkConnect:
        """Return when it has started. Raises SparkServerFailed if the worker leaves meanwhile."""
        starting = asyncio.create_task(kept.server.start())
        leave = asyncio.create_task(kept.leave.wait())
        try:
            await asyncio.wait([starting, leave], return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                raise SparkServerFailed("the worker stops")
            return starting.result()
        finally:
            leave.cancel()
            starting.cancel()
            await asyncio.wait([starting])  # nothing of it is left then, if it has not started

    async def _until_end(self, kept: _Kept) -> str | None:
        """Return when nothing of it is left: why it has died, None if it was unused."""
        server, silent = kept.server, 0
        over = asyncio.create_task(server.over())
        leave = asyncio.create_task(kept.leave.wait())
        try:
            while not over.done():
                await asyncio.wait(
                    [over, leave], timeout=CHECK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
                if over.done():
                    break
                if leave.done() or (
                    kept.is_idle and time.monotonic() - kept.idle_since >= self._idle_s
                ):
                    kept.leave.set()
                    await server.stop("it is unused")
                    return None
                silent = 0 if kept.is_idle or await server.answers() else silent + 1
                if silent >= MOST_SILENT:
                    await server.stop("it does not respond", grace_s=0.0)
                elif not silent:
                    await kept.end_jobs_of_others()
        finally:
            over.cancel()
            leave.cancel()
        why = await server.over()
        await server.stop(why)  # its folder
        return why

    async def _until_over(self, kept: _Kept, attempt: HeldAttempt) -> None:
        await attempt.over.wait()
        if self._kept.get(kept.server.project) is kept and not kept.leave.is_set():
            await kept.server.release(kept.users[attempt])
        self._leave(kept, attempt)

    def _leave(self, kept: _Kept, attempt: HeldAttempt) -> None:
        kept.idle_since = kept.left[kept.users.pop(attempt)] = time.monotonic()
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _keep_task(self, work: Coroutine[None, None, None]) -> None:
        task = self._tasks.create_task(work)
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)
