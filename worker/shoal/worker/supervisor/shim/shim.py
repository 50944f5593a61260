"""A shim: the process between the launcher and one attempt, and after that the next one.

It starts the program, waits for it, and stores how it ended. As a subreaper it keeps everything
that its attempt starts below itself, however it detaches; so whatever is below a shim belongs to
one attempt, and a shim with no process left below it can take another one.

It ends nothing. Whenever something is left that must die, the shim itself ends, by its own will or
killed by the launcher: what is below it then becomes the launcher's, which kills it at once. If the
launcher has died, the shim kills everything itself, as the watchdog does.

It may wait for a disk, for a program that does not open, for anything: no process waits for it.
Commands are JSON lines; a report is one byte, REPORT or LAST, and the line for the agent.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time

from shoal.worker.supervisor import proctree
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.shim.child import CannotStart, Program, open_output, start
from shoal.worker.supervisor.shim.descriptors import lower_limit
from shoal.worker.supervisor.shim.journal import Journal
from shoal.worker.supervisor.shim.records import End, store
from shoal.worker.supervisor.watchdog import kill_children

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from shoal.worker.supervisor.cgroups import Cgroup
    from shoal.worker.supervisor.shim.progress import ProgressPage

SHIM = "shoal-shim"  # name of the process
REPORT, LAST = b" ", b"."
# From the kernel, when the launcher has died. No other process has a reason to send it.
_LAUNCHER_DIED = signal.SIGUSR2
_READ_SIZE = 1 << 16  # bytes
#: That a program runs is reported so much later, or, if it has ended by then, together with its
#: end: each report wakes the launcher and the agent.
MOMENT_MS = 30


def be_shim(shim: Shim, cgroup: Cgroup, niceness: int, keep: Sequence[int]) -> NoReturn:
    """Turn this copy of the launcher into a shim that keeps its own descriptors and ``keep``.

    It and all that it starts are in ``cgroup``, if that can be had.
    """
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(_LAUNCHER_DIED, lambda *_: shim.end_if_orphaned())
        proctree.prctl(proctree.PR_SET_PDEATHSIG, _LAUNCHER_DIED)
        shim.end_if_orphaned()  # it died before we asked for the signal
        _close_all_but([*shim.fds, *keep])
        proctree.become_subreaper()
        proctree.rename(SHIM)
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        lower_limit()
        cgroup.join()
        gc.freeze()
        shim.serve()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - it must not go on as a second launcher
        shim.end_if_orphaned()
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def _close_all_but(keep: Sequence[int]) -> None:
    begin = 3
    for fd in sorted(keep):
        os.closerange(begin, fd)
        begin = fd + 1
    os.closerange(begin, os.sysconf("SC_OPEN_MAX"))


class Shim:
    """The loop of the process. ``filtered`` is where the output of its only attempt goes, if that
    has a filter in front of its log.
    """

    def __init__(
        self,
        launcher_pid: int,
        commands: int,
        reports: int,
        progress: ProgressPage,
        altered: Sequence[int],
        filtered: int | None,
        number: int,
    ) -> None:
        """``altered`` are the signals whose action the launcher has changed. ``number`` is no
        other living shim's.
        """
        self._launcher_pid = launcher_pid
        self._commands, self._reports, self._progress = commands, reports, progress
        self._altered, self._filtered = altered, filtered
        self._unread = bytearray()
        self._journal = Journal(number)

    @property
    def fds(self) -> list[int]:
        """The descriptors that it needs."""
        filtered = [] if self._filtered is None else [self._filtered]
        return [self._commands, self._reports, *filtered]

    def end_if_orphaned(self) -> None:
        """End with everything below us if the launcher is dead."""
        if os.getppid() != self._launcher_pid:
            kill_children()
            os._exit(0)

    def serve(self) -> None:
        """Take one command after the other, until the launcher closes its end."""
        while (command := self._next_command()) is not None:
            if command["type"] == "launch":
                self._attend(command)
            elif command["type"] == "store":
                launch, end = command["launch"], End(*command["end"])
                # The shim before us may have stored it as well.
                self._report(LAST, store(launch, end, None, self._journal_of(launch), again=True))
            # What else there is concerns an attempt that has ended meanwhile.

    def _next_command(self) -> dict[str, Any] | None:
        while (end := self._unread.find(b"\n")) < 0:
            chunk = os.read(self._commands, _READ_SIZE)
            if not chunk:
                return None
            self._unread += chunk
        line = self._unread[:end].decode()
        del self._unread[: end + 1]
        command: dict[str, Any] = json.loads(line)
        return command

    def _journal_of(self, launch: Mapping[str, Any]) -> Journal | None:
        return self._journal if launch.get("journaled") else None

    def _report(self, kind: bytes, message: bytes) -> None:
        line = kind + message + b"\n"
        while line:
            line = line[os.write(self._reports, line) :]

    # -- one attempt ------------------------------------------------------------------------

    def _attend(self, launch: Mapping[str, Any]) -> None:
        try:
            log = open_output(
                launch["log_path"]
            )  # also for a filter: it cannot report that it fails
        except CannotStart as error:
            self._fail(launch, error)
            return
        try:
            self._run(launch, log)
        except CannotStart as error:
            self._fail(launch, error)
        finally:
            os.close(log)

    def _fail(self, launch: Mapping[str, Any], error: CannotStart) -> None:
        failed = {
            "type": "failed",
            "id": launch["id"],
            "error": str(error),
            "cause": EndCause.STARVED if error.starved else EndCause.NOT_STARTED,
        }
        self._report(LAST, json.dumps(failed).encode())

    def _run(self, launch: Mapping[str, Any], log: int) -> None:
        """Start the program, and see to its end. Raises CannotStart."""
        progress, pid = self._progress, self._start(launch, log)
        progress.run(pid)
        if not _ends_within(pid, MOMENT_MS):
            started = {"type": "started", "id": launch["id"], "pid": pid, "at": progress.started}
            self._report(REPORT, json.dumps(started).encode())
        progress.end(_status_of(pid), time.monotonic())  # known here before the kernel forgets it
        progress.charge(os.wait4(pid, 0)[2])
        # The launcher says so before anybody is asked to end; then the rest may take its time.
        reasons = self._next_command() if progress.warned else None
        if not _is_alone(patient=reasons is not None) or self._filtered is not None:
            os._exit(0)
        progress.clear()
        end = end_of(progress, **reasons["why"] if reasons else {})
        self._report(LAST, store(launch, end, log, self._journal_of(launch), pid=pid))

    def _start(self, launch: Mapping[str, Any], log: int) -> int:
        try:
            output = log if self._filtered is None else self._filtered
            return start(Program(launch), self._altered, output)
        except CannotStart:
            raise
        except Exception as error:  # the agent must hear of everything
            why = f"cannot start {launch['argv'][0]!r}: {type(error).__name__}: {error}"
            raise CannotStart(why) from error


def end_of(
    progress: ProgressPage,
    cause: str | None = None,
    kill_reason: str = "",
    notes: Sequence[str] = (),
) -> End:
    """Return how the attempt ended whose progress this is.

    ``cause``: that of the kill; None if it was not killed.
    """
    return End(
        progress.started,
        progress.took_s,
        progress.status,
        progress.max_rss_kb,
        progress.cpu_s,
        cause,
        kill_reason,
        notes,
    )


def _ends_within(pid: int, timeout_ms: int) -> bool:
    """Whether that child ends within so many milliseconds."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:  # no descriptor is left: then its start is reported at once
        return False
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(timeout_ms))
    finally:
        os.close(pidfd)


def _status_of(pid: int) -> int:
    """Return the wait status of that child as soon as it has ended; do not reap it.

    Orphans that end before it are reaped.
    """
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        if ended.si_pid == pid:
            return ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status
        os.waitpid(ended.si_pid, 0)


def _is_alone(*, patient: bool) -> bool:
    """Whether no child is left. ``patient``: waits until there is none."""
    try:
        while os.waitpid(-1, 0 if patient else os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False
