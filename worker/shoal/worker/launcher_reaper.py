"""Ending attempts: the right processes are signalled, all of them, and no others.

Two facts of the kernel carry this module. First, a main process is a subreaper: orphans below it
become its children, so the tree below it is complete; when it ends, its children become ours in
the same instant, before we can learn of its end. So after reaping a main process, the list of our
own children holds every direct heir, and killing those brings up the next generation, until a look
at the list finds none. Second, the number of a direct child cannot be reused before we reap it, so
signalling our own children by number hits nobody else.
"""

from __future__ import annotations

import os
import signal
import time

from shoal.worker import proctree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.worker.launcher_attempt import Attempt


FEW = 8  # up to so many leftovers, or generations of them, are killed as they come


class Reaper:
    """Signals and reaps every child of the launcher."""

    def __init__(self) -> None:
        self._mains: dict[int, Attempt] = {}  # main processes not reaped yet
        #: Our own, not to be touched, each with what is told its wait status.
        self._helpers: dict[int, Callable[[int], None]] = {}
        self._clearing: list[Attempt] = []  # main process gone, others perhaps not
        self._leftovers: dict[int, list[Attempt]] = {}  # whose process that could be
        self._untouchable: set[int] = set()  # became another user's, so we may not kill it
        self._turns = 0  # in a row in which leftovers were killed
        self._next_sweep_at = 0.0
        self._snapshot: list[proctree.Process] | None = None

    def own(self, attempt: Attempt) -> None:
        """Take charge of a main process that was just forked."""
        self._mains[attempt.pid] = attempt

    def spare(self, pid: int, ended: Callable[[int], None] = lambda _status: None) -> None:
        """Leave that child alone: it is a helper of the launcher itself.

        ``ended`` is told its wait status.
        """
        self._helpers[pid] = ended

    @property
    def busy(self) -> bool:
        """Whether any process of an attempt may be alive."""
        return bool(self._mains or self._clearing)

    def forget_snapshot(self) -> None:
        """Look at the machine afresh for the next ``warn``; called once per turn of the loop."""
        self._snapshot = None

    def warn(self, attempt: Attempt) -> None:
        """Send TERM once to every process of the attempt, whose main process is not reaped."""
        if self._snapshot is None:
            self._snapshot = proctree.scan()
        attempt.warned = proctree.descendants(attempt.pid, self._snapshot)
        try:
            os.killpg(attempt.pid, signal.SIGTERM)
            os.killpg(attempt.pid, signal.SIGCONT)  # a stopped process cannot act on TERM
        except ProcessLookupError:  # not its own group yet: the child waits with signals blocked
            os.kill(attempt.pid, signal.SIGTERM)
        except PermissionError:
            _note_foreign(attempt, attempt.pid)
        for process in attempt.warned:
            if process.group == attempt.pid:
                continue
            try:
                proctree.signal_exactly(process, signal.SIGTERM)
                proctree.signal_exactly(process, signal.SIGCONT)
            except PermissionError:
                _note_foreign(attempt, process.pid)

    def kill(self, attempt: Attempt) -> None:
        """Kill the main process and its group; ``clear`` sees to everything else."""
        if attempt.ended_at is not None:
            return  # reaped: the number may be somebody else's by now
        try:
            os.killpg(attempt.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # not its own group yet
        except PermissionError:
            _note_foreign(attempt, attempt.pid)
            return
        proctree.kill_child(attempt.pid)

    def reap(self) -> list[Attempt]:
        """Collect all dead children. Returns the attempts whose main process was among them."""
        over = []
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self._leftovers.pop(pid, None)
            self._untouchable.discard(pid)
            if (ended := self._helpers.pop(pid, None)) is not None:
                ended(status)
            attempt = self._mains.pop(pid, None)
            if attempt is not None:
                attempt.end(status, usage)
                over.append(attempt)
        self._clearing += over
        return over

    def clear(self) -> list[Attempt]:
        """Kill what ended attempts left behind. Returns the attempts of which nothing is left.

        Call it after ``reap``, in every turn of the loop.
        """
        if not self._clearing:
            self._turns = 0
            return []
        now = time.monotonic()
        killed = []
        for pid in proctree.own_children():
            if pid in self._mains or pid in self._helpers or pid in self._untouchable:
                continue
            owners = self._leftovers.get(pid) or self._owners(pid)
            if not owners:
                continue
            self._leftovers[pid] = owners
            if min(owner.leftovers_die_at for owner in owners) <= now:
                self._kill_leftover(pid, owners)
                killed.append(pid)
        self._kill_below(killed, now)
        held = {owner.id for owners in self._leftovers.values() for owner in owners}
        cleared = [attempt for attempt in self._clearing if attempt.id not in held]
        self._clearing = [attempt for attempt in self._clearing if attempt.id in held]
        return cleared

    def _owners(self, pid: int) -> list[Attempt]:
        """Return the ended attempts that the orphan ``pid`` may belong to.

        Its session or our own walk names the attempt exactly; a process that has left its session
        since can be from any attempt that is being cleared now.
        """
        try:
            session = os.getsid(pid)
        except ProcessLookupError:
            return []
        if session in self._mains:
            return []  # a sibling that a running attempt made (CLONE_PARENT): still at home
        process = proctree.read_process(pid)
        for attempt in self._clearing:
            if attempt.pid == session or _contains(attempt.warned, process):
                return [attempt]
        return list(self._clearing)

    def _kill_below(self, killed: list[int], now: float) -> None:
        """Kill what descends from leftovers, too, if they are many or keep coming."""
        if not killed:
            self._turns = 0
            return
        self._turns += 1
        if (len(killed) > FEW or self._turns > FEW) and now >= self._next_sweep_at:
            grace = any(attempt.leftovers_die_at > now for attempt in self._clearing)
            proctree.kill_below(killed.__contains__ if grace else self._is_leftover)
            # As much time for everything else as that took.
            after = time.monotonic()
            self._next_sweep_at = after + (after - now)

    def _is_leftover(self, pid: int) -> bool:
        """Whether a child of ours belongs to no attempt that is running."""
        if pid in self._mains or pid in self._helpers or pid in self._untouchable:
            return False
        return bool(self._owners(pid))

    def _kill_leftover(self, pid: int, owners: list[Attempt]) -> None:
        try:
            proctree.kill_child(pid)
        except PermissionError:
            self._untouchable.add(pid)
            del self._leftovers[pid]
            for attempt in owners:
                _note_foreign(attempt, pid)


def _contains(warned: list[proctree.Process], process: proctree.Process | None) -> bool:
    return process is not None and any(
        known.pid == process.pid and known.start == process.start for known in warned
    )


def _note_foreign(attempt: Attempt, pid: int) -> None:
    attempt.note(f"process {pid} runs as another user and could not be ended")
