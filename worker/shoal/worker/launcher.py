"""The launcher: a small process beside the worker agent that owns all task processes.

It exists so that tasks obey even when the agent cannot act. It kills everything it started when
the agent's socket closes, when the lease that the agent keeps extending runs out, or when its
guardian dies; and it stores each exit record durably before it reports it. It is single-threaded,
imports little, never waits for a disk, a program or the agent, and sleeps while nothing happens.

*Nothing outlives its attempt.* Each main process is a subreaper, so whatever an attempt starts
stays below it, however it detaches (double fork, setsid, nohup, empty environment). When the main
process ends, the rest becomes the launcher's own children, and those are killed until none is
left (``launcher_reaper.py``); only then the attempt counts as over.

The messages are listed in ``launching.py``, the agent's side.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import signal
import time

from shoal.worker.launcher_attempt import Attempt, masks_of
from shoal.worker.launcher_child import CATCHABLE, Program, open_log, run_child
from shoal.worker.launcher_link import AgentLink
from shoal.worker.launcher_masking import Filter, start_filter
from shoal.worker.launcher_reaper import Reaper
from shoal.worker.launcher_records import Job, RecordWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from shoal.worker.launcher_guard import LeaseBoard

AGENT_GONE = "the worker agent ended"
GUARD_GONE = "a guard of the launcher process ended"
LEASE_LOST = "worker lost its ZooKeeper session"
IGNORED_SIGNALS = (
    # A terminal's Ctrl-C or a service manager's TERM is the agent's business: it drains first.
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Launcher:
    """The event loop. One per process: it reaps every child and owns the signal handlers."""

    def __init__(
        self, agent_fd: int, guard_fds: list[int], board: LeaseBoard, niceness: int
    ) -> None:
        """``niceness`` is that of the tasks; we may have another."""
        self._pid = os.getpid()
        self._niceness = niceness
        self._link = AgentLink(agent_fd)
        self._guard_fds = guard_fds
        self._board = board
        self._wakeup_fd = _notice_dead_children()
        self._altered_signals = [
            number for number in CATCHABLE if signal.getsignal(number) is not signal.SIG_DFL
        ]
        self._reaper = Reaper()
        self._records = RecordWriter()
        self._attempts: dict[str, Attempt] = {}
        self._starting: dict[int, Attempt] = {}  # by the pipe that exec closes
        self._over: list[Attempt] = []  # nothing of them is left but perhaps the filter
        self._deadlines: list[tuple[float, int, Attempt]] = []  # a heap; may hold outdated entries
        self._deadline_count = 0
        self._lease: float | None = None
        self._lease_lost = False
        self._agent_gone = False
        self._closing: str | None = None
        self._poll = select.poll()
        for fd in (agent_fd, *guard_fds, self._wakeup_fd):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Serve until the agent has gone or asks to stop, and nothing is left."""
        self._link.send("ready", pid=self._pid)
        self._link.flush()
        while self._closing is None or self._attempts or self._link.wants_to_write:
            self._wait()
            for attempt in self._reaper.reap():
                if attempt.error_pipe is not None:
                    self._read_start(attempt.error_pipe)
            self._obey()
            self._check_deadlines(time.monotonic())
            for attempt in self._reaper.clear():
                if attempt.filter is not None:
                    attempt.filter.finish()
                self._over.append(attempt)
            self._conclude_all()
            self._store_records()
            self._link.flush()
            if self._lease_lost and not self._reaper.busy:
                self._board.all_dead()  # our guards need not step in

    # -- waiting ----------------------------------------------------------------------------

    def _wait(self) -> None:
        """Sleep until something happens, and handle all descriptors but the agent's."""
        self._reaper.forget_snapshot()
        if not self._agent_gone:
            write = select.POLLOUT if self._link.wants_to_write else 0
            self._poll.modify(self._link.fd, select.POLLIN | write)
        for fd, _ in self._poll.poll(self._timeout_ms()):
            if fd == self._wakeup_fd:
                os.read(fd, 4096)
            elif fd in self._guard_fds:
                self._poll.unregister(fd)
                self._close(GUARD_GONE)
            elif fd in self._starting:
                self._read_start(fd)
            elif fd != self._link.fd:
                self._finish_batch(fd)

    def _timeout_ms(self) -> int | None:
        until = [self._deadlines[0][0]] if self._deadlines else []
        if self._lease is not None and not self._lease_lost:
            until.append(self._lease)
        if not until:
            return None
        return max(0, int((min(until) - time.monotonic()) * 1000) + 1)

    def _schedule(self, attempt: Attempt) -> None:
        if (deadline := attempt.next_deadline) is None:
            return
        if len(self._deadlines) > 64 + 2 * len(self._attempts):  # mostly of attempts long over
            live = [entry for entry in self._deadlines if entry[2].id in self._attempts]
            heapq.heapify(live)
            self._deadlines = live
        self._deadline_count += 1  # breaks ties: attempts themselves have no order
        heapq.heappush(self._deadlines, (deadline, self._deadline_count, attempt))

    def _check_deadlines(self, now: float) -> None:
        if self._lease is not None and now >= self._lease and not self._lease_lost:
            self._lease_lost = True
            self._end_all(LEASE_LOST, 0.0)
        while self._deadlines and self._deadlines[0][0] <= now:
            attempt = heapq.heappop(self._deadlines)[2]
            due = attempt.next_deadline
            if due is None or due > now:
                continue  # over, or put off since
            if attempt.kill_reason is None:
                attempt.timed_out = True
                reason = f"timed out after {attempt.timeout_s:g} s"
                self._end(attempt, reason, attempt.timeout_grace_s)
            else:
                attempt.kill_sent = True
                self._reaper.kill(attempt)

    # -- the agent's messages ---------------------------------------------------------------

    def _obey(self) -> None:
        if self._agent_gone:
            return
        messages = self._link.receive()
        if self._link.closed:
            self._agent_gone = True
            self._poll.unregister(self._link.fd)
            self._close(AGENT_GONE)
        for message in messages:
            kind = message["type"]
            if kind == "launch":
                self._launch(message)
            elif kind == "kill":
                attempt = self._attempts.get(str(message["id"]))
                if attempt is not None:  # else its end has crossed the message
                    self._end(attempt, str(message["reason"]), _seconds(message["grace_s"]))
            elif kind == "lease":
                self._lease = _seconds(message["deadline"])
                self._lease_lost = False
                self._board.expect_end(self._lease, _seconds(message["patience_s"]))
            elif kind == "shutdown":
                self._close(str(message["reason"]), _seconds(message["grace_s"]))

    def _close(self, reason: str, grace_s: float = 0.0) -> None:
        self._closing = self._closing or reason
        self._end_all(reason, grace_s)

    # -- start ------------------------------------------------------------------------------

    def _launch(self, message: dict[str, object]) -> None:
        attempt_id = str(message["id"])
        if self._closing is not None:
            self._fail(attempt_id, f"the launcher is shutting down: {self._closing}")
        elif self._lease is not None and time.monotonic() >= self._lease:
            self._fail(attempt_id, LEASE_LOST)
        elif attempt_id in self._attempts:
            self._fail(attempt_id, f"attempt {attempt_id} is running already")
        else:
            output: Filter | None = None
            try:
                output = self._start_filter(message)
                pid, pipe = self._fork(Program(message), output)
            except OSError as error:
                if output is not None:
                    output.attach()
                    output.finish()
                self._fail(attempt_id, f"cannot start another process: {error.strerror}")
                return
            attempt = Attempt(message, pid, pipe)
            attempt.filter = output
            self._attempts[attempt_id] = self._starting[pipe] = attempt
            self._poll.register(pipe, select.POLLIN)
            self._reaper.own(attempt)
            self._schedule(attempt)

    def _start_filter(self, message: dict[str, object]) -> Filter | None:
        """Put a filter in front of the log of an attempt that has secrets."""
        if not (masks := masks_of(message)):
            return None
        output = start_filter(str(message["log_path"]), masks, open_log, self._niceness)
        self._reaper.spare(output.pid, output.ended)
        return output

    def _fork(self, program: Program, output: Filter | None) -> tuple[int, int]:
        """Start the child. Returns its number and the pipe that tells whether exec worked."""
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        # Signals wait until the child has its own dispositions: none is lost, none hits our code.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, CATCHABLE)
        try:
            pid = os.fork()
            if pid == 0:
                filtered = None if output is None else output.write_end
                altered, niceness = self._altered_signals, self._niceness
                run_child(program, self._pid, altered, niceness, write_end, filtered)
        except OSError:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if output is not None:
            output.attach()
        return pid, read_end

    def _read_start(self, pipe: int) -> None:
        """Learn from the pipe whether the program runs (it ends empty) or why it does not."""
        attempt = self._starting[pipe]
        while True:
            try:
                chunk = os.read(pipe, 65536)
            except BlockingIOError:
                return
            if not chunk:
                break
            attempt.start_failure += chunk
        self._poll.unregister(pipe)
        os.close(pipe)
        del self._starting[pipe]
        attempt.error_pipe = None
        if not attempt.start_failure:
            self._link.send("started", id=attempt.id, pid=attempt.pid, at=attempt.started)

    def _fail(self, attempt_id: str, error: str) -> None:
        self._link.send("failed", id=attempt_id, error=error)

    # -- end --------------------------------------------------------------------------------

    def _end_all(self, reason: str, grace_s: float) -> None:
        for attempt in list(self._attempts.values()):
            self._end(attempt, reason, grace_s)

    def _end(self, attempt: Attempt, reason: str, grace_s: float) -> None:
        """Ask all processes of the attempt to end; after ``grace_s`` they are killed.

        The first reason stays; a later, shorter grace period wins.
        """
        kill_at = time.monotonic() + grace_s
        if attempt.kill_reason is not None:
            attempt.kill_at = min(kill_at, attempt.kill_at or kill_at)
        elif attempt.ended_at is not None:
            return  # ended by itself; what it left is being killed already
        else:
            attempt.kill_reason, attempt.kill_at = reason, kill_at
            if grace_s > 0:
                self._reaper.warn(attempt)
        if grace_s <= 0:
            self._reaper.kill(attempt)
        self._schedule(attempt)

    def _conclude_all(self) -> None:
        """Conclude the attempts whose logs are complete."""
        waiting = []
        for attempt in self._over:
            if attempt.filter is not None and attempt.filter.status is None:
                waiting.append(attempt)
                continue
            if attempt.filter is not None and attempt.filter.status:
                attempt.note("the filter of its log was killed; its log may be incomplete")
            self._conclude(attempt)
        self._over = waiting

    def _conclude(self, attempt: Attempt) -> None:
        """Nothing of the attempt is left: store how it ended, or say that it never started."""
        if attempt.start_failure:
            del self._attempts[attempt.id]
            self._fail(attempt.id, json.loads(attempt.start_failure))
        else:
            self._records.add(Job(attempt))

    def _store_records(self) -> None:
        try:
            batch = self._records.start()
        except OSError:  # the machine has no room for another process
            self._report(self._records.store_here())
            return
        if batch is not None:
            pid, pipe = batch
            self._reaper.spare(pid)
            self._poll.register(pipe, select.POLLIN)

    def _finish_batch(self, pipe: int) -> None:
        done = self._records.finished()
        if not done:
            return
        self._poll.unregister(pipe)
        self._report(done)

    def _report(self, done: list[Job]) -> None:
        for job in done:
            record = job.record
            if job.log_error:
                record["reason"] = f"{record['reason']}; the log may be incomplete: {job.log_error}"
            if job.error:
                record["reason"] = f"{record['reason']}; cannot store the exit record: {job.error}"
            del self._attempts[job.id]
            self._link.send("exited", durable=job.error is None, record=record)


def _seconds(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


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
