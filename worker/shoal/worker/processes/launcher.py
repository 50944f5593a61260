"""The agent's side of the launcher: start it, hand it attempts, learn how they ended.

::

    async with Launcher() as launcher:
        launched = await launcher.launch(request)      # the program runs
        await launcher.kill(launched.id, "stopped by the user", grace_s=10)
        record = await launched.wait()                 # nothing of the attempt is left

Messages are JSON objects, one per line, over a socket pair.

======================  ====================================================================
to the launcher         ``launch`` (the fields of LaunchRequest), ``kill`` id cause reason grace_s,
                        ``lease`` deadline patience_s, ``try``, ``shutdown`` reason grace_s
from the launcher       ``ready`` pid, ``started`` id pid at, ``failed`` id cause error,
                        ``exited`` durable record pid place; of a short attempt that alone;
                        ``tried`` error
======================  ====================================================================

Everything here belongs to one event loop.
"""

import asyncio
import json
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Self

import structlog

from shoal.core.errors import ShoalError
from shoal.worker.processes.line_protocol import Lines
from shoal.worker.processes.program import ExitRecord, LaunchRequest
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.cgroups import CGROUP_VARIABLE, Cgroup
from shoal.worker.supervisor.clock import boottime
from shoal.worker.supervisor.shim.descriptors import LIMIT_VARIABLE
from shoal.worker.supervisor.watchdog import (
    LOOK_AGAIN_S,
    PATIENCE_OF_AGENT,
    LeaseBoard,
    board_fd,
    kill_children,
)

LAUNCHER_MAIN = Path(__file__).parents[1] / "supervisor" / "main.py"
START_TIMEOUT_S = 30.0  # of an interpreter, on a machine that is busy with other things
WATCHDOG_TIMEOUT_S = 5.0  # then we kill what it should
SHORTEST_PATIENCE_S = 0.25  # a sound launcher kills hundreds of processes in less
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 5.0  # between attempts to replace a dead launcher

log = structlog.get_logger()


class LaunchFailed(ShoalError):
    """The program of an attempt could not be started. Nothing of it runs."""

    def __init__(self, attempt_id: str, why: str, cause: EndCause = EndCause.NOT_STARTED) -> None:
        self.id, self.why, self.cause = attempt_id, why, cause
        super().__init__(f"attempt {attempt_id} could not be started: {why}")


class NoRoomToStart(LaunchFailed):
    """This machine has no descriptor, process or memory left for it. Nothing of it runs."""

    retriable: ClassVar[bool] = True

    def __init__(self, attempt_id: str, why: str) -> None:
        super().__init__(attempt_id, why, EndCause.STARVED)


class LauncherDied(ShoalError):
    """The launcher process ended unexpectedly. All processes of the attempt are dead."""

    retriable: ClassVar[bool] = True

    def __init__(self, attempt_id: str) -> None:
        self.id = attempt_id
        super().__init__(
            f"attempt {attempt_id}: the launcher process died, so all task processes of this "
            "worker were killed; look for its message on the worker's standard error"
        )


class LauncherUnavailable(ShoalError):
    """The launcher is not running: it cannot be started, or is being closed."""

    retriable: ClassVar[bool] = True


OnExit = Callable[[ExitRecord], None]
#: Attempt, name of the journal, place in it: see ``supervisor/shim/journal.py``.
OnStored = Callable[[str, str, int], None]


class Launched:
    """One attempt in the launcher's hands. ``started_at`` is in seconds since the Unix epoch."""

    def __init__(self, attempt_id: str) -> None:
        self.id = attempt_id
        self.pid = 0  # until it is started
        self.started_at = 0.0
        self._begun = asyncio.Event()  # it is started, or will not be
        self._over = asyncio.Event()
        self._end: ExitRecord | ShoalError | None = None  # or why there is no record

    @property
    def is_over(self) -> bool:
        """Whether nothing of the attempt is left."""
        return self._over.is_set()

    async def wait(self) -> ExitRecord:
        """Return the record once nothing of the attempt is left. Raises LauncherDied.

        Any number of tasks may wait; cancelling one of them leaves the attempt running.
        """
        await self._over.wait()
        return self._record()

    def _record(self) -> ExitRecord:
        if isinstance(self._end, ExitRecord):
            return self._end
        assert self._end is not None
        raise self._end

    async def _started(self) -> None:
        """Return when the program runs. Raises LaunchFailed, LauncherDied."""
        await self._begun.wait()
        if not self.pid:
            self._record()

    def _set_started(self, pid: int, at: float) -> None:
        self.pid, self.started_at = pid, at
        self._begun.set()

    def _set_end(self, end: ExitRecord | ShoalError) -> None:
        self._end = end
        self._begun.set()
        self._over.set()


class Launcher:
    """Starts the launcher process, keeps it alive, and speaks to it.

    ``on_exit`` is called in the event loop with every record, also of those not waited for.
    With ``on_stored``, records go into journals beside their ``record_path`` if they fit, and it is
    called before ``on_exit`` with the place of each that it is known of.
    ``held_fds`` stay open in the launcher until all its processes are dead, even if the agent is
    killed: pass the descriptor of a locked file, and the next process that locks it is alone.

    If the launcher process dies, its watchdog kills everything it ran; then all pending calls raise
    LauncherDied and a new launcher is started, with the lease that was set last. If the agent
    dies, the launcher kills everything, stores the records and ends.

    ``task_descriptors``: how many descriptors each process of a task may have, None: as many as
    the calling process.

    ``adopts_orphans`` says that the calling process is a subreaper and starts no process in a
    session of its own beside us: what is left if launcher and watchdog are killed in the same
    instant comes to it, and is killed. It also kills both if neither obeys the lease.

    ``cgroup`` is the folder of the control group in which attempts get groups, see ``cgroups.py``;
    None: they get none. No process but the launcher's may be in it.
    """

    def __init__(
        self,
        *,
        on_exit: OnExit | None = None,
        on_stored: OnStored | None = None,
        held_fds: Sequence[int] = (),
        adopts_orphans: bool = False,
        task_descriptors: int | None = None,
        cgroup: Path | None = None,
    ) -> None:
        self._on_exit, self._on_stored = on_exit, on_stored
        self._adopts_orphans = adopts_orphans
        self._held_fds = tuple(held_fds)
        self._task_descriptors = task_descriptors
        self._cgroup = Cgroup(None if cgroup is None else str(cgroup))
        self._trials: list[asyncio.Future[str | None]] = []  # to be answered in their order
        self._attempts: dict[str, Launched] = {}
        self._lease: dict[str, Any] | None = None  # the message that was sent last
        self._closing = False
        self._ready = asyncio.Event()
        self._before_launch: Callable[[], None] = lambda: None
        self._news = asyncio.Event()  # an attempt is launched, or a launcher is lost
        self._pid = 0
        self._lines: Lines | None = None  # to the process that was started last
        self._board: LeaseBoard  # of the process that was started last
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Number of the launcher process that is serving now."""
        return self._pid

    @property
    def running(self) -> dict[str, Launched]:
        """The attempts whose end has not been reported, by id."""
        return dict(self._attempts)

    async def __aenter__(self) -> Self:
        process = await self._start()
        self._supervisor = asyncio.create_task(self._supervise(process))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close("the worker agent ended")

    def before_launch(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called right before each launch."""
        self._before_launch = callback

    async def launch(
        self, request: LaunchRequest, *, require: Callable[[], None] = lambda: None
    ) -> Launched:
        """Start the program; return when it runs.

        ``require`` is called right before the request is sent, perhaps long after this call, and
        may raise an error, which is raised then. Raises LaunchFailed with the reason if it cannot
        run, LauncherDied or LauncherUnavailable. If the caller is cancelled meanwhile, the attempt
        is killed.
        """
        await self._until_ready()
        require()
        self._before_launch()
        if request.id in self._attempts:
            raise LaunchFailed(request.id, "an attempt with this id is running already")
        launched = self._attempts[request.id] = Launched(request.id)
        self._news.set()
        try:
            journaled = request.journaled and self._on_stored is not None
            await self._send({**request.message(), "journaled": journaled})
            await launched._started()
        except asyncio.CancelledError:
            self._write(_kill(request.id, EndCause.INTERRUPT, "cancelled", 0.0))
            raise
        return launched

    async def answered(self, attempt_id: str) -> None:
        """Return when it is known whether the program of an attempt that was launched runs.

        A caller that waits in ``launch`` for that goes on first.
        """
        if (launched := self._attempts.get(attempt_id)) is not None:
            await launched._begun.wait()

    async def kill(
        self, attempt_id: str, reason: str, grace_s: float, cause: EndCause = EndCause.KILL
    ) -> bool:
        """Ask all processes of the attempt to end (TERM), kill them after ``grace_s`` seconds.

        Returns whether the attempt was still running; ``wait`` returns when it has ended. The first
        cause and reason stay in the record; a later call can only shorten the grace period.
        """
        known = attempt_id in self._attempts
        if known:
            await self._send(_kill(attempt_id, cause, reason, grace_s))
        return known

    async def try_to_start(self) -> str | None:
        """Return why no attempt could be started now, None if one could.

        Raises LauncherUnavailable.
        """
        await self._until_ready()
        trial: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._trials.append(trial)
        self._news.set()
        await self._send({"type": "try"})
        return await trial

    def extend_lease(self, deadline: float, patience_s: float = SHORTEST_PATIENCE_S) -> None:
        """Let the attempts live until ``deadline`` (``boottime()`` seconds).

        When it passes, the launcher kills everything at once, whether the agent acts or hangs,
        and refuses launches until the next call. If that takes longer than ``patience_s``, its
        watchdog kills launcher and all; if it takes twice as long, we kill both (if the process
        ``adopts_orphans``). Without any call there is no limit.
        """
        self._lease = {"type": "lease", "deadline": deadline, "patience_s": patience_s}
        self._write(self._lease)

    async def close(self, reason: str, grace_s: float = 0.0) -> None:
        """End all attempts and the launcher; return when all of it is dead and reported."""
        self._closing = True
        self._news.set()
        if self._supervisor is None:
            return
        self._write({"type": "shutdown", "reason": reason, "grace_s": grace_s})
        try:
            await self._supervisor
        finally:
            if self._lines is not None:
                self._lines.close()  # if we were cancelled, this makes the launcher kill all

    # -- process ----------------------------------------------------------------------------

    async def _start(self) -> Process:
        """Start a launcher and wait for its first message. Raises LauncherUnavailable."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await self._spawn(theirs)
        except BaseException:
            ours.close()
            raise
        loop = asyncio.get_running_loop()
        _, lines = await loop.create_unix_connection(
            lambda: Lines(self._handle, self._news.set), sock=ours
        )
        self._lines = lines
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                await lines.heard.wait()
        if not self._ready.is_set():
            lines.close()
            raise LauncherUnavailable(
                f"the launcher process ({LAUNCHER_MAIN}) did not start; look for its message on "
                "the worker's standard error"
            )
        return process

    async def _spawn(self, theirs: socket.socket) -> Process:
        """Start the process with its end of the socket, and with a board of its own."""
        board = board_fd()
        try:
            self._board = LeaseBoard(board)
            fds = (theirs.fileno(), board, *self._held_fds)
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-X", "utf8", str(LAUNCHER_MAIN), *map(str, fds)),
                pass_fds=fds,
                stdin=DEVNULL,
                stdout=DEVNULL,
                cwd="/",
                env=self._environment(),
                start_new_session=True,  # a terminal's Ctrl-C is not for it
            )
        finally:
            os.close(board)

    def _environment(self) -> dict[str, str]:
        env = {k: v for k, v in os.environ.items() if k == "LD_LIBRARY_PATH"}
        if self._task_descriptors is not None:
            env[LIMIT_VARIABLE] = str(self._task_descriptors)
        if self._cgroup.folder is not None:
            env[CGROUP_VARIABLE] = self._cgroup.folder
        return env

    async def _supervise(self, process: Process) -> None:
        while True:
            assert self._lines is not None
            await self._until_lost(self._lines, process)
            # The socket shows that the launcher is gone, the process that its watchdog is, too:
            # only now nothing is left of the attempts.
            self._ready.clear()
            await self._see_watchdog_out(process)
            self._give_up_attempts()
            if self._closing:
                return
            log.error("launcher died", pid=self._pid, returncode=process.returncode)
            process = await self._restart()

    async def _until_lost(self, lines: Lines, process: Process) -> None:
        """Return when the launcher is gone; kill it if its watchdog should have and has not."""
        while self._adopts_orphans and not lines.lost.is_set():
            if not (
                self._attempts or self._trials or self._closing
            ):  # the watchdog is enough: nothing is left that must die
                self._news.clear()
                await self._news.wait()
                continue
            if self._board.overdue(PATIENCE_OF_AGENT):
                log.warning("launcher and watchdog do not obey their lease, killing them")
                await _ended(process)
                await asyncio.to_thread(self._kill_rest)
                break
            due = self._board.due(PATIENCE_OF_AGENT)
            wait_s = LOOK_AGAIN_S if due is None else min(due - boottime(), LOOK_AGAIN_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await lines.lost.wait()
        await lines.lost.wait()

    async def _see_watchdog_out(self, process: Process) -> None:
        """Return when the watchdog has ended, and with it all that the launcher has left."""
        try:
            async with asyncio.timeout(WATCHDOG_TIMEOUT_S if self._adopts_orphans else None):
                await process.wait()
        except TimeoutError:  # it was stopped: we can do its work
            log.warning("watchdog of the launcher does not end, killing it", pid=process.pid)
            await _ended(process)
        await asyncio.to_thread(self._kill_rest)

    def _kill_rest(self) -> None:
        """Kill what launcher and watchdog have left: they are dead, or our children. Blocks."""
        if self._adopts_orphans:
            kill_children(os.getsid(0))
        self._cgroup.clear()

    async def _restart(self) -> Process:
        delay_s = FIRST_RETRY_S
        while True:
            try:
                return await self._start()
            except (LauncherUnavailable, OSError) as error:
                log.error("launcher cannot be restarted", error=str(error), retry_s=delay_s)
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, LAST_RETRY_S)

    def _give_up_attempts(self) -> None:
        attempts, self._attempts = self._attempts, {}
        for launched in attempts.values():
            launched._set_end(LauncherDied(launched.id))
        trials, self._trials = self._trials, []
        for trial in trials:
            if not trial.done():
                trial.set_result("the launcher process died")

    # -- messages ---------------------------------------------------------------------------

    def _handle(self, line: bytes) -> None:
        message = json.loads(str(line, "utf-8"))  # json would guess the encoding of bytes
        match message["type"]:
            case "ready":
                self._serve(message["pid"])
            case "started":
                self._attempts[message["id"]]._set_started(message["pid"], message["at"])
            case "failed":
                launched = self._attempts.pop(message["id"])
                cause, why = EndCause(message["cause"]), message["error"]
                launched._set_end(
                    NoRoomToStart(launched.id, why)
                    if cause is EndCause.STARVED
                    else LaunchFailed(launched.id, why, cause)
                )
            case "tried":
                trial = self._trials.pop(0)
                if not trial.done():
                    trial.set_result(message["error"])
            case "exited":
                record = ExitRecord.from_json(message["record"], durable=message["durable"])
                if self._on_stored is not None and "place" in message:
                    self._on_stored(record.id, *message["place"])
                self._handle_exit(record, message.get("pid", 0))

    def _serve(self, pid: int) -> None:
        """The process ``pid`` takes attempts from now on."""
        self._pid = pid
        if self._lease is not None:
            self._write(self._lease)
        if self._closing:  # since the one before it died, which alone was asked
            self._write({"type": "shutdown", "reason": "the worker agent ended", "grace_s": 0.0})
        self._ready.set()

    def _handle_exit(self, record: ExitRecord, pid: int) -> None:
        launched = self._attempts.pop(record.id)
        if not launched.pid:  # over before it was worth a report of its own
            launched._set_started(pid, record.started_at)
        launched._set_end(record)
        if self._on_exit is not None:
            try:
                self._on_exit(record)
            except Exception:  # a mistake of the callback must not end the supervision
                log.exception("exit callback failed", attempt=record.id)

    async def _until_ready(self) -> None:
        if self._closing or self._supervisor is None:
            raise LauncherUnavailable("the launcher is not open: it takes no attempts now")
        if self._ready.is_set():
            return
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._ready.wait()
        except TimeoutError:
            raise LauncherUnavailable(
                f"the launcher process has been down for {START_TIMEOUT_S:g} s; look for its "
                "message on the worker's standard error"
            ) from None

    def _write(self, message: dict[str, Any]) -> None:
        if self._lines is not None:
            self._lines.send(json.dumps(message).encode())

    async def _send(self, message: dict[str, Any]) -> None:
        """Write and wait for room. A launcher that has died is noticed by the reader."""
        self._write(message)
        assert self._lines is not None
        await self._lines.room()


async def _ended(process: Process) -> None:
    """Kill the process, unless it is dead already, and wait for its end."""
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _kill(attempt_id: str, cause: EndCause, reason: str, grace_s: float) -> dict[str, Any]:
    return {
        "type": "kill",
        "id": attempt_id,
        "cause": cause,
        "reason": reason,
        "grace_s": grace_s,
    }
