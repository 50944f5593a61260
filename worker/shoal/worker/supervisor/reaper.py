"""Ending attempts: the right processes are signalled, all of them, and no others.

Two facts of the kernel carry this module. First, each shim is a subreaper: orphans below it become
its children, so the tree below it is complete; when it ends, its children become ours in the same
instant, before we can learn of its end. So after reaping a shim, the list of our own children holds
every direct heir, and killing those brings up the next generation, until the list is empty. Second,
the number of a direct child cannot be reused before we reap it, so signalling our own children by
number hits no other process.

Where shims have control groups, the group is killed first, in one act; all the above remains the
proof. An attempt is over when its tree is empty and the kernel lets its group be removed, too.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from shoal.worker.supervisor import proctree
from shoal.worker.supervisor.cgroups import LOOK_AGAIN_S
from shoal.worker.supervisor.shim.progress import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shoal.worker.supervisor.cgroups import Cgroup
    from shoal.worker.supervisor.shims import AttemptProcess

FEW = 8  # up to so many leftovers, or generations of them, are killed as they come
LONGEST_WAIT_S = 1.0  # between looks at a group that does not become empty


class Reaper:
    """Signals and reaps every child of the launcher."""

    def __init__(self, attempts: Mapping[str, AttemptProcess]) -> None:
        """``attempts`` are all that are not over."""
        self._attempts = attempts
        #: Our own, not to be touched, each with the callback for its wait status.
        self._helpers: dict[int, Callable[[int], None]] = {}
        self._clearing: list[AttemptProcess] = []  # shim gone, others perhaps not
        self._leftovers: dict[int, list[AttemptProcess]] = {}  # whose process that could be
        self._untouchable: set[int] = set()  # became another user's, so we may not kill it
        self._turns = 0  # in a row in which leftovers were killed
        self._next_sweep_at = 0.0
        self._snapshot: list[proctree.Process] | None = None
        self._empty: list[Cgroup] = []  # of dead shims, to be removed
        self._full = False  # whether a group is not empty, though its tree is
        self._wait_s = LOOK_AGAIN_S  # before the next look at that

    @property
    def next_deadline(self) -> float | None:
        """When ``clear`` has something to do, if nothing happens before."""
        return time.monotonic() + self._wait_s if self._full else None

    def spare(self, pid: int, ended: Callable[[int], None]) -> None:
        """Leave that child alone: it is a helper of the launcher itself.

        ``ended`` is called with its wait status.
        """
        self._helpers[pid] = ended

    def inherit(self, attempt: AttemptProcess) -> None:
        """Kill what is left of an attempt whose shim has ended."""
        attempt.cgroup.kill()
        self._clearing.append(attempt)

    def discard(self, cgroup: Cgroup) -> None:
        """Remove the group of a shim that died without an attempt."""
        self._empty.append(cgroup)

    def forget_snapshot(self) -> None:
        """Read the process table again for the next ``warn``; called once per turn of the loop."""
        self._snapshot = None

    def warn(self, attempt: AttemptProcess) -> None:
        """Send TERM once to every process of the attempt, whose shim knows why."""
        if self._snapshot is None:
            self._snapshot = proctree.scan()
        below = proctree.descendants(attempt.shim.pid, self._snapshot)
        # The group of the main process at once, so that no process it forks meanwhile is left out.
        leaders = [process for process in below if process.pid == attempt.pid == process.group]
        grouped = [main.pid for main in leaders if proctree.signal_group(main, *_END_YOURSELF)]
        for process in below:
            if process.group not in grouped:
                with suppress(PermissionError):  # of another user: see to it at the kill
                    proctree.signal_exactly(process, *_END_YOURSELF)

    def kill(self, attempt: AttemptProcess) -> None:
        """Kill the shim and its group; ``clear`` sees to everything that was below it."""
        # The shim first: it must not live to see the end of the program, or it would report that.
        proctree.kill_child(attempt.shim.pid)
        attempt.cgroup.kill()

    def reap(self) -> None:
        """Collect all dead children."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._leftovers.pop(pid, None)
            self._untouchable.discard(pid)
            if (ended := self._helpers.pop(pid, None)) is not None:
                ended(status)
                continue
            for attempt in self._attempts.values():
                if attempt.pid == pid and attempt.progress.stage < ENDED:
                    attempt.progress.end(status, time.monotonic())
                    attempt.progress.charge(usage)

    def clear(self) -> list[AttemptProcess]:
        """Kill what ended attempts left behind. Returns the attempts of which nothing is left.

        Call it after ``reap``, in every turn of the loop.
        """
        self._full = False
        self._empty = [cgroup for cgroup in self._empty if self._is_full(cgroup)]
        cleared = self._clear_attempts()
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S) if self._full else LOOK_AGAIN_S
        return cleared

    def _clear_attempts(self) -> list[AttemptProcess]:
        if not self._clearing:
            self._turns = 0
            return []
        left = [pid for pid in proctree.own_children() if self._is_leftover(pid)]
        for pid in left:
            if pid not in self._leftovers:
                self._leftovers[pid] = self._owners(pid)
            self._kill_leftover(pid)
        self._kill_below(left)
        held = {owner.id for owners in self._leftovers.values() for owner in owners}
        cleared = [a for a in self._clearing if a.id not in held and not self._is_full(a.cgroup)]
        self._clearing = [attempt for attempt in self._clearing if attempt not in cleared]
        return cleared

    def _is_full(self, cgroup: Cgroup) -> bool:
        """Remove the group of an empty tree; return whether the kernel finds something in it."""
        if cgroup.remove():
            return False
        full = cgroup.kill()  # it may have come from outside; what cannot be killed is let be
        self._full = self._full or full
        return full

    def _is_leftover(self, pid: int) -> bool:
        return pid not in self._helpers and pid not in self._untouchable

    def _owners(self, pid: int) -> list[AttemptProcess]:
        """Return the attempts that the orphan ``pid`` may belong to.

        Its session may name the attempt exactly; a process that has left its session can be from
        any attempt that is being cleared now.
        """
        session = os.getsid(pid)  # also of the dead, as long as we have not reaped them
        exactly = [attempt for attempt in self._clearing if attempt.pid == session]
        return exactly or list(self._clearing)

    def _kill_below(self, left: list[int]) -> None:
        """Kill what descends from leftovers, too, if they are many or keep coming."""
        if not left:
            self._turns = 0
            return
        self._turns += 1
        now = time.monotonic()
        if (len(left) > FEW or self._turns > FEW) and now >= self._next_sweep_at:
            proctree.kill_below(self._is_leftover)
            # As much time for everything else as that took.
            after = time.monotonic()
            self._next_sweep_at = after + (after - now)

    def _kill_leftover(self, pid: int) -> None:
        owners = self._leftovers[pid]
        try:
            if any(attempt.pid == pid for attempt in owners):
                with suppress(ProcessLookupError):  # not its own group yet
                    os.killpg(pid, signal.SIGKILL)
            proctree.kill_child(pid)
        except PermissionError:
            if any(each.cgroup.killed and each.cgroup.holds(pid) for each in owners):
                return  # it runs as another user, and dies with its group
            self._untouchable.add(pid)
            for attempt in owners:
                attempt.note(f"process {pid} runs as another user and could not be ended")
            if all(attempt.pid != pid for attempt in owners):
                del self._leftovers[pid]  # only a main process is waited for


_END_YOURSELF = (signal.SIGTERM, signal.SIGCONT)  # a stopped process cannot act on TERM
