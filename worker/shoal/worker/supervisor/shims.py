"""The launcher's side of its shims, and of the attempts that they run.

A shim is forked when needed, used again, and never waited for. The stages of an attempt, from its
launch to the exit record, are on the progress of its shim (``shim/progress.py``)::

    starting ──exec──▶ running ──main process gone──▶ ended ──nothing left──▶ alone ──▶ over
                        └─ being killed (TERM sent, KILL at ``kill_at``) ─┘

When the shim dies before the attempt is over, the launcher takes its place: it kills what is left,
and has the end stored. All instants named ``*_at`` are monotonic seconds (``time.monotonic``),
except in the record.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from itertools import count

from shoal.worker.supervisor.shim.child import altered_signals
from shoal.worker.supervisor.shim.descriptors import two_pipes
from shoal.worker.supervisor.shim.progress import ALONE, ENDED, STARTING, ProgressPage
from shoal.worker.supervisor.shim.records import End
from shoal.worker.supervisor.shim.shim import LAST, Shim, be_shim, end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from shoal.worker.supervisor.causes import EndCause
    from shoal.worker.supervisor.cgroups import Cgroup
    from shoal.worker.supervisor.shim.masks import Filter

#: So many shims may wait for their next attempt for ever. Any beside them has ``LINGER_S`` to get
#: one, since a fork costs more than all else about a short attempt.
MOST_IDLE = max(8, 2 * (os.cpu_count() or 1))
LINGER_S = 3.0
_READ_SIZE = 1 << 16  # bytes


class ShimHandle:
    """One shim process, from its fork until it is reaped."""

    def __init__(
        self,
        pid: int,
        number: int,
        commands: int,
        reports: int,
        progress: ProgressPage,
        cgroup: Cgroup,
        once: bool,
    ) -> None:
        self.pid, self.number, self.progress, self.once = pid, number, progress, once
        self.cgroup = cgroup
        self.commands, self.reports = commands, reports
        self.attempt: AttemptProcess | None = None
        #: Whether there was no room for all of a command.
        self.blocked = False
        self.closed = False
        self.idle_since = 0.0  # monotonic seconds
        self._unsent = bytearray()
        self._unread = b""
        for fd in (commands, reports):
            os.set_blocking(fd, False)

    def send(self, line: bytes = b"") -> None:
        """Send a line, and what is left of those before; sets ``blocked`` if it is too much."""
        self._unsent += line
        self.blocked = False
        try:
            while self._unsent:
                del self._unsent[: os.write(self.commands, self._unsent)]
        except BlockingIOError:
            self.blocked = True
        except BrokenPipeError:  # it has died: reaping it sees to its attempt
            self._unsent.clear()

    def receive(self) -> list[tuple[bytes, bool]]:
        """Return lines for the agent, each with whether it is the last of its attempt."""
        lines: list[tuple[bytes, bool]] = []
        if self.closed:
            return lines
        try:
            while chunk := os.read(self.reports, _READ_SIZE):
                *whole, self._unread = (self._unread + chunk).split(b"\n")
                lines += [(line[1:] + b"\n", line[:1] == LAST) for line in whole]
                if len(chunk) < _READ_SIZE:
                    break
        except BlockingIOError:
            pass
        return lines

    def close(self) -> None:
        """Close our ends; the shim ends as soon as it is idle."""
        self.closed = True
        os.close(self.commands)
        os.close(self.reports)


class AttemptProcess:
    """State of one attempt. Written by the launcher's loop only."""

    def __init__(
        self, launch: Mapping[str, object], line: bytes, shim: ShimHandle, output: Filter | None
    ) -> None:
        """``launch`` is the message, ``line`` its text without the line's end."""
        self.id = str(launch["id"])
        self.line = line
        #: Its number and progress stay known when it is dead.
        self.shim = shim
        #: What stands between the attempt and its log; None if it has no secrets.
        self.filter = output
        #: Whether the agent knows that the program runs.
        self.announced = False
        self.started_at = time.monotonic()
        timeout_s = launch.get("timeout_s")
        self.timeout_s = float(timeout_s) if isinstance(timeout_s, int | float) else None
        grace_s = launch.get("timeout_grace_s", 0.0)
        self.timeout_grace_s = float(grace_s) if isinstance(grace_s, int | float) else 0.0
        #: Why it is being ended; None while it may run. The reason is text for people.
        self.kill_cause: EndCause | None = None
        self.kill_reason = ""
        self.kill_at: float | None = None
        self.kill_sent = False
        #: Whether its shim has died, so that it is the launcher's.
        self.orphaned = False
        #: Set when the launcher has found that nothing of it is left.
        self.end: End | None = None
        self._notes: list[str] = []
        shim.attempt = self
        shim.progress.begin(STARTING, time.time(), self.started_at)

    @property
    def progress(self) -> ProgressPage:
        return self.shim.progress

    @property
    def cgroup(self) -> Cgroup:
        """The group of its shim, and so of all its processes."""
        return self.shim.cgroup

    @property
    def pid(self) -> int:
        """Number of the main process; 0 while the program is starting."""
        return self.progress.pid

    @property
    def alive(self) -> bool:
        """Whether any process of it may be alive."""
        return self.end is None and self.progress.stage != ALONE

    @property
    def next_deadline(self) -> float | None:
        """When this attempt needs attention next, if nothing happens before."""
        if self.kill_cause is not None:
            return None if self.kill_sent else self.kill_at
        if self.timeout_s is None or self.progress.stage >= ENDED:
            return None
        return self.started_at + self.timeout_s

    def note(self, text: str) -> None:
        """Add a sentence to the reason of the record."""
        self._notes.append(text)

    def conclude(self) -> None:
        """Nothing of it is alive, and its shim did not live to say so."""
        if self.progress.stage < ENDED:
            self.progress.end(signal.SIGKILL, time.monotonic())  # no other end was seen
        self.end = end_of(self.progress, self.kill_cause, self.kill_reason, self._notes)

    def detach(self, shim: ShimHandle) -> bytes:
        """Leave the rest, storing how it ended, to another shim. Returns the command."""
        self.shim = shim
        shim.attempt = self
        shim.progress.begin(ALONE, 0.0, 0.0)
        end = json.dumps(self.end).encode()
        return b'{"type": "store", "end": %b, "launch": %b}\n' % (end, self.line)


class Shims:
    """All shims of a launcher. Their reports are waited for in ``poll``."""

    def __init__(
        self,
        poll: select.poll,
        started: Callable[[ShimHandle], None],
        niceness: int,
        held: Sequence[int],
        cgroup: Cgroup,
    ) -> None:
        """``started`` hears of each new one; ``niceness`` is that of the tasks; the descriptors
        ``held`` stay open in all; the group of each is in ``cgroup``.
        """
        self._poll, self._started, self._niceness, self._held = poll, started, niceness, held
        self._cgroup, self._started_before = cgroup, count()
        self._altered = altered_signals()
        self._idle: list[ShimHandle] = []  # the last that became idle is the next to be taken
        self._by_fd: dict[int, ShimHandle] = {}
        self._numbers: set[int] = set()  # of those that may be alive

    def take(self) -> ShimHandle:
        """Return an idle shim, or a new one. Raises OSError if no process can be started."""
        while self._idle:
            shim = self._idle.pop()
            if os.waitid(os.P_PID, shim.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return shim
            # It was killed: it will be reaped, and discarded, as any other.
        return self.start()

    def start(self, output: Filter | None = None) -> ShimHandle:
        """Return a new shim; one for the only attempt that writes to ``output``. Raises OSError."""
        filtered = None if output is None else output.write_end
        launcher_pid = os.getpid()
        number = next(n for n in count() if n not in self._numbers)
        # Unlike numbers, groups are not used again: another shim's processes may still die in one.
        cgroup = self._cgroup.child(f"{launcher_pid}-{next(self._started_before)}")
        commands, to_shim, from_shim, reports = two_pipes()
        try:
            progress = ProgressPage()
            pid = os.fork()
            if pid == 0:
                shim = Shim(
                    launcher_pid, commands, reports, progress, self._altered, filtered, number
                )
                be_shim(shim, cgroup, self._niceness, self._held)
        except OSError:
            os.close(to_shim)
            os.close(from_shim)
            raise
        finally:
            os.close(commands)
            os.close(reports)
        handle = ShimHandle(
            pid, number, to_shim, from_shim, progress, cgroup, once=output is not None
        )
        self._numbers.add(number)
        self._by_fd[from_shim] = self._by_fd[to_shim] = handle
        self._poll.register(from_shim, select.POLLIN)
        self._started(handle)
        return handle

    def command(self, shim: ShimHandle, line: bytes) -> None:
        """Send a line; if it is too long for one piece, the rest when ``poll`` says so."""
        was_blocked = shim.blocked
        shim.send(line)
        if shim.blocked and not was_blocked:
            self._poll.register(shim.commands, select.POLLOUT)

    def ready(self, fd: int) -> ShimHandle | None:
        """Return the shim that has reported something; None if ``fd`` is about a command."""
        shim = self._by_fd.get(fd)
        if shim is None or fd == shim.reports:
            return shim
        shim.send()
        if not shim.blocked:
            self._poll.unregister(fd)
        return None

    def release(self, shim: ShimHandle) -> None:
        """Its attempt is over: keep it for another one, or let it end."""
        shim.attempt = None
        if shim.once:
            self.discard(shim)
        else:
            shim.idle_since = time.monotonic()
            self._idle.append(shim)

    @property
    def next_deadline(self) -> float | None:
        """When ``thin_out`` has something to do, if nothing happens before."""
        return self._idle[0].idle_since + LINGER_S if len(self._idle) > MOST_IDLE else None

    def thin_out(self, now: float) -> None:
        """End the shims that were not needed lately, but for a few."""
        while (deadline := self.next_deadline) is not None and deadline <= now:
            self.discard(self._idle[0])

    def discard_idle(self) -> None:
        """Let all end that have no attempt."""
        for shim in list(self._idle):
            self.discard(shim)

    def bury(self, shim: ShimHandle) -> None:
        """Forget a shim that is dead, and has been reaped."""
        self.discard(shim)
        self._numbers.discard(shim.number)

    def discard(self, shim: ShimHandle) -> None:
        """Forget a shim that is dead, or is to end as soon as it is idle."""
        if shim.closed:
            return
        del self._by_fd[shim.commands], self._by_fd[shim.reports]
        self._poll.unregister(shim.reports)
        if shim.blocked:
            self._poll.unregister(shim.commands)
        shim.close()
        if shim in self._idle:
            self._idle.remove(shim)
