"""The launcher: a small process beside the worker agent that owns all task processes.

It exists so that tasks obey even when the agent cannot act. It kills everything it started when
the agent's socket closes, when the lease that the agent keeps extending runs out, or when its
watchdog dies. It is single-threaded, imports little, never waits for a disk, a program or the
agent, and sleeps while nothing happens.

Programs are started and waited for by *shims* (``shim/shim.py``), one for each running attempt,
which store the exit records, too; what they report to the agent the launcher only passes on.

*Nothing outlives its attempt.* Each shim is a subreaper, so whatever an attempt starts stays below
its shim, however it detaches (double fork, setsid, nohup, empty environment). If anything is left
when the main process has ended, or if all of it is to be killed, the shim ends; the rest becomes
the launcher's own children, and those are killed until none is left (``reaper.py``); only
then the attempt counts as over. Where the worker may make control groups, each shim has one, and
all that is in it is killed at once (``cgroups.py``).

The messages are listed in ``processes/launcher.py``, the agent's side.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import signal
import time

from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.clock import LOOK_AGAIN_S, boottime
from shoal.worker.supervisor.link import AgentLink
from shoal.worker.supervisor.reaper import Reaper
from shoal.worker.supervisor.shim.child import NO_ROOM, open_log
from shoal.worker.supervisor.shim.masks import Filter, start_filter
from shoal.worker.supervisor.shim.progress import ENDED, RUNNING
from shoal.worker.supervisor.shim.records import exited, masks_of, record_of, store
from shoal.worker.supervisor.shims import AttemptProcess, ShimHandle, Shims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.worker.supervisor.cgroups import Cgroup
    from shoal.worker.supervisor.watchdog import LeaseBoard

AGENT_GONE = "the worker agent ended"
WATCHDOG_GONE = "the watchdog of the launcher process ended"
NO_LEASE = "worker lost its ZooKeeper session"
IGNORED_SIGNALS = (
    # A terminal's Ctrl-C or a service manager's TERM is the agent's business: it drains first.
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class LauncherLoop:
    """The event loop. One per process: it reaps every child and owns the signal handlers."""

    def __init__(
        self,
        agent_fd: int,
        watchdog_fd: int,
        board: LeaseBoard,
        niceness: int,
        held_fds: Sequence[int],
        attempts: Cgroup,
    ) -> None:
        """``niceness`` is that of the tasks; we may have another. ``held_fds`` stay open in all
        shims. ``attempts`` is the group in which each shim gets one of its own.
        """
        self._niceness = niceness
        self._link = AgentLink(agent_fd)
        self._link_events = select.POLLIN
        self._watchdog_fd = watchdog_fd
        self._board = board
        self._wakeup_fd = _notice_dead_children()
        self._poll = select.poll()
        for fd in (agent_fd, watchdog_fd, self._wakeup_fd):
            self._poll.register(fd, select.POLLIN)
        self._attempts: dict[str, AttemptProcess] = {}
        self._reaper = Reaper(self._attempts)
        self._shims = Shims(self._poll, self._spare, niceness, held_fds, attempts)
        self._over: list[AttemptProcess] = []  # nothing of them is left but perhaps the filter
        self._deadlines: list[tuple[float, str]] = []  # a heap; may hold outdated entries
        self._lease: float | None = None
        self._lease_lost = False
        self._agent_gone = False
        self._closing: str | None = None

    def run(self) -> None:
        """Serve until the agent has gone or asks to stop, and nothing is left."""
        self._link.send({"type": "ready", "pid": os.getpid()})
        self._link.flush()
        while self._closing is None or self._attempts or self._link.wants_to_write:
            self._wait()
            now = time.monotonic()
            self._check_deadlines(now)
            self._shims.thin_out(now)
            for attempt in self._reaper.clear():
                attempt.conclude()
                if attempt.filter is not None:
                    attempt.filter.finish()
                self._over.append(attempt)
            if self._over:
                self._conclude_all()
            self._link.flush()
            if self._lease_lost and not any(each.alive for each in self._attempts.values()):
                self._board.all_dead()  # the watchdog need not act

    # -- waiting ----------------------------------------------------------------------------

    def _wait(self) -> None:
        """Sleep until something happens, and handle it."""
        self._reaper.forget_snapshot()
        events = select.POLLIN | (select.POLLOUT if self._link.wants_to_write else 0)
        if events != self._link_events and not self._agent_gone:
            self._poll.modify(self._link.fd, events)
            self._link_events = events
        for fd, _ in self._poll.poll(self._timeout_ms()):
            if fd == self._link.fd:
                self._obey()
            elif fd == self._wakeup_fd:
                os.read(fd, 4096)
                self._reaper.reap()
            elif fd == self._watchdog_fd:
                self._poll.unregister(fd)
                self._close(WATCHDOG_GONE)
            elif (shim := self._shims.ready(fd)) is not None:
                self._pass_on(shim)

    def _timeout_ms(self) -> int | None:
        until = [self._deadlines[0][0]] if self._deadlines else []
        if self._lease is not None and not self._lease_lost:
            left_s = self._lease - boottime()
            until.append(
                time.monotonic() + (min(left_s, LOOK_AGAIN_S) if self._attempts else left_s)
            )
        if (thinned_at := self._shims.next_deadline) is not None:
            until.append(thinned_at)
        if (cleared_at := self._reaper.next_deadline) is not None:
            until.append(cleared_at)
        if not until:
            return None
        return max(0, int((min(until) - time.monotonic()) * 1000) + 1)

    def _schedule(self, attempt: AttemptProcess) -> None:
        if (deadline := attempt.next_deadline) is None:
            return
        if len(self._deadlines) > 64 + 2 * len(self._attempts):  # mostly of attempts long over
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._attempts]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (deadline, attempt.id))

    def _check_deadlines(self, now: float) -> None:
        if self._lease is not None and boottime() >= self._lease and not self._lease_lost:
            self._lease_lost = True
            self._end_all(EndCause.LEASE_LOST, NO_LEASE, 0.0)
        while self._deadlines and self._deadlines[0][0] <= now:
            attempt = self._attempts.get(heapq.heappop(self._deadlines)[1])
            due = None if attempt is None else attempt.next_deadline
            if attempt is None or due is None or due > now:
                continue  # over, or put off since
            if attempt.kill_cause is None:
                reason = f"timed out after {attempt.timeout_s:g} s"
                self._end(attempt, EndCause.TIMEOUT, reason, attempt.timeout_grace_s)
            else:
                self._end(attempt, attempt.kill_cause, attempt.kill_reason, 0.0)

    # -- the agent's messages ---------------------------------------------------------------

    def _obey(self) -> None:
        lines = self._link.receive()
        if self._link.closed:
            self._agent_gone = True
            self._poll.unregister(self._link.fd)
            self._close(AGENT_GONE)
        for line in lines:
            message = json.loads(line.decode())
            kind = message["type"]
            if kind == "launch":
                self._launch(message, line)
            elif kind == "kill":
                attempt = self._attempts.get(str(message["id"]))
                if attempt is not None:  # else its end has crossed the message
                    cause, reason = EndCause(message["cause"]), str(message["reason"])
                    self._end(attempt, cause, reason, float(message["grace_s"]))
            elif kind == "lease":
                self._lease = float(message["deadline"])
                self._lease_lost = False
                self._board.expect_end(self._lease, float(message["patience_s"]))
                if not self._attempts:
                    self._board.note_use(in_use=False)
            elif kind == "try":
                self._try_to_start()
            elif kind == "shutdown":
                self._close(str(message["reason"]), float(message["grace_s"]))

    def _close(self, reason: str, grace_s: float = 0.0) -> None:
        self._closing = self._closing or reason
        self._end_all(EndCause.SHUTDOWN, reason, grace_s)

    # -- start ------------------------------------------------------------------------------

    def _launch(self, message: dict[str, object], line: bytes) -> None:
        attempt_id = str(message["id"])
        if self._closing is not None:
            why = f"the launcher is shutting down: {self._closing}"
            self._fail(attempt_id, EndCause.SHUTDOWN, why)
        elif self._lease is not None and boottime() >= self._lease:
            self._fail(attempt_id, EndCause.LEASE_LOST, NO_LEASE)
        elif attempt_id in self._attempts:
            why = f"attempt {attempt_id} is running already"
            self._fail(attempt_id, EndCause.NOT_STARTED, why)
        else:
            output: Filter | None = None
            try:
                output = self._start_filter(message)
                shim = self._shims.take() if output is None else self._shims.start(output)
            except OSError as error:
                if output is not None:
                    output.finish()
                self._shims.discard_idle()  # what they hold may be what is missing
                why = f"cannot start another process: {error.strerror}"
                starved = error.errno in NO_ROOM
                cause = EndCause.STARVED if starved else EndCause.NOT_STARTED
                self._fail(attempt_id, cause, why)
                return
            finally:
                if output is not None:
                    output.attach()
            if not self._board.in_use:
                self._board.note_use(in_use=True)
            attempt = self._attempts[attempt_id] = AttemptProcess(message, line, shim, output)
            self._shims.command(shim, line + b"\n")
            self._schedule(attempt)

    def _start_filter(self, message: dict[str, object]) -> Filter | None:
        """Put a filter in front of the log of an attempt that has secrets."""
        if not (masks := masks_of(message)):
            return None
        output = start_filter(str(message["log_path"]), masks, open_log, self._niceness)
        self._reaper.spare(output.pid, output.ended)
        return output

    def _spare(self, shim: ShimHandle) -> None:
        self._reaper.spare(shim.pid, lambda _status: self._lose(shim))

    def _fail(self, attempt_id: str, cause: EndCause, error: str) -> None:
        self._link.send({"type": "failed", "id": attempt_id, "cause": cause, "error": error})

    def _try_to_start(self) -> None:
        """Report whether an attempt could be started now."""
        error = None
        try:
            self._shims.release(self._shims.take())
        except OSError as failure:
            error = failure.strerror
        self._link.send({"type": "tried", "error": error})

    # -- end --------------------------------------------------------------------------------

    def _end_all(self, cause: EndCause, reason: str, grace_s: float) -> None:
        for attempt in self._attempts.values():
            self._end(attempt, cause, reason, grace_s)

    def _end(self, attempt: AttemptProcess, cause: EndCause, reason: str, grace_s: float) -> None:
        """Ask all processes of the attempt to end; after ``grace_s`` they are killed.

        The first cause and its reason stay; a later, shorter grace period wins.
        """
        if attempt.orphaned or not attempt.alive:
            return  # what is left is being killed already
        stage, kill_at = attempt.progress.stage, time.monotonic() + grace_s
        if attempt.kill_cause is not None:
            attempt.kill_at = min(kill_at, attempt.kill_at or kill_at)
        elif stage == ENDED:
            grace_s = 0  # ended by itself; its shim should have left the rest to us by now
        else:
            attempt.kill_cause, attempt.kill_reason, attempt.kill_at = cause, reason, kill_at
            if stage == RUNNING and grace_s > 0:
                self._warn(attempt)
            else:
                grace_s = 0  # a program that is still starting has nothing to clean up
        if grace_s <= 0:
            attempt.kill_sent = True
            self._reaper.kill(attempt)
        self._schedule(attempt)

    def _warn(self, attempt: AttemptProcess) -> None:
        why = {"cause": attempt.kill_cause, "kill_reason": attempt.kill_reason}
        line = json.dumps({"type": "end", "why": why}).encode() + b"\n"
        self._shims.command(attempt.shim, line)
        attempt.progress.warn()
        self._reaper.warn(attempt)

    def _pass_on(self, shim: ShimHandle) -> None:
        """Give the agent what a shim reports."""
        for line, is_last in shim.receive():
            self._link.forward(line)
            assert shim.attempt is not None
            shim.attempt.announced = True
            if is_last:
                if shim.attempt.end is None and shim.attempt.filter is not None:
                    shim.attempt.filter.finish()  # the program could not be started
                del self._attempts[shim.attempt.id]
                self._shims.release(shim)

    def _lose(self, shim: ShimHandle) -> None:
        """A shim has ended: what was below it is among our children by now."""
        self._pass_on(shim)
        self._shims.bury(shim)
        attempt = shim.attempt
        if attempt is None:
            self._reaper.discard(shim.cgroup)
        elif attempt.end is None:
            attempt.orphaned = True
            self._reaper.inherit(attempt)
        else:
            self._reaper.discard(shim.cgroup)
            record = record_of(json.loads(attempt.line), attempt.end)
            why = "the process that stores exit records was killed"
            self._finish(attempt, exited(record, why))

    def _conclude_all(self) -> None:
        """Have the ends of those attempts stored whose logs are complete."""
        waiting = []
        for attempt in self._over:
            if attempt.filter is not None and attempt.filter.status is None:
                waiting.append(attempt)
                continue
            if attempt.filter is not None and attempt.filter.status:
                attempt.note("the filter of its log was killed; its log may be incomplete")
            self._store(attempt)
        self._over = waiting

    def _store(self, attempt: AttemptProcess) -> None:
        if not attempt.announced:
            pid = attempt.pid or attempt.shim.pid  # its shim was all there has been of it
            started = {"id": attempt.id, "pid": pid, "at": attempt.progress.started}
            self._link.send({"type": "started", **started})
        try:
            shim = self._shims.take()
        except OSError:  # the machine has no room for another process
            assert attempt.end is not None
            self._finish(attempt, store(json.loads(attempt.line), attempt.end))
            return
        self._shims.command(shim, attempt.detach(shim))

    def _finish(self, attempt: AttemptProcess, message: bytes) -> None:
        del self._attempts[attempt.id]
        self._link.forward(message + b"\n")


def _notice_dead_children() -> int:
    """Return a descriptor that becomes readable when a child has ended; ignore other signals."""
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read_end
