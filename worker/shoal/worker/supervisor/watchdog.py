"""The watchdog: a process above the launcher that kills what it leaves, or it if it hangs.

It is the launcher's parent, and the agent is its own. All three are subreapers, so whatever loses
its parents comes to the innermost one that lives, which kills it. Any two of the three may die in
the same instant. If all three do, the shims are left, which kill what is below them. The watchdog
need not know anything about attempts.

A launcher that does not act on its lease (it is stopped, or hangs in the kernel) is killed by the
watchdog shortly after. If the watchdog does not act either, both are killed by the agent
(``processes/launcher.py``). The moment is in memory that the three share. All times are those of
the lease's clock (``clock.py``).
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import struct
from contextlib import suppress

from shoal.worker.supervisor import proctree
from shoal.worker.supervisor.clock import boottime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from shoal.worker.supervisor.cgroups import Cgroup

WATCHDOG = "task-watchdog"  # name of the process
#: The launcher may take the patience of its agent to kill everything at the end of the lease; the
#: watchdog steps in after that, and the agent after twice as long.
PATIENCE_OF_WATCHDOG, PATIENCE_OF_AGENT = 1, 2
#: How often is checked, while attempts run, whether their lease ends sooner than was known: it may
#: have been changed, or the machine was suspended.
LOOK_AGAIN_S = 1.0


class LeaseBoard:
    """What the agent and the watchdog must know of the lease. The launcher writes, they read.

    ``wakeup`` is the descriptor of a counter (eventfd) that wakes the watchdog up.
    """

    def __init__(self, fd: int, wakeup: int | None = None) -> None:
        """``fd`` is that of a file in memory, see ``board_fd``. It may be closed afterwards."""
        self._shared, self._wakeup = mmap.mmap(fd, mmap.PAGESIZE), wakeup

    def _wake_watchdog(self) -> None:
        if self._wakeup is not None:
            os.eventfd_write(self._wakeup, 1)

    def expect_end(self, deadline: float, patience_s: float) -> None:
        """Name the moment at which the launcher must begin to kill everything.

        It must be done ``patience_s`` later.
        """
        was = self.due(PATIENCE_OF_WATCHDOG)
        struct.pack_into("d", self._shared, 8, patience_s)
        struct.pack_into("d", self._shared, 0, deadline)
        due = self.due(PATIENCE_OF_WATCHDOG)
        if was is None or (due is not None and due < was):
            self._wake_watchdog()

    def all_dead(self) -> None:
        """Nothing is left that must die."""
        struct.pack_into("d", self._shared, 0, 0.0)

    def note_use(self, *, in_use: bool) -> None:
        """Note whether attempts run. The watchdog checks the lease less often while none does."""
        struct.pack_into("?", self._shared, 16, in_use)
        if in_use:  # it may be waiting for the end of a lease that is far away
            self._wake_watchdog()

    @property
    def in_use(self) -> bool:
        """Whether attempts run."""
        return bool(struct.unpack_from("?", self._shared, 16)[0])

    def due(self, patience: int) -> float | None:
        """Return when one steps in that waits ``patience`` times as long; None: not now."""
        deadline = float(struct.unpack_from("d", self._shared, 0)[0])
        patience_s = float(struct.unpack_from("d", self._shared, 8)[0])
        return deadline + patience * patience_s if deadline else None

    def overdue(self, patience: int) -> bool:
        """Return whether one is to step in that waits ``patience`` times as long."""
        due = self.due(patience)
        return due is not None and boottime() >= due


def board_fd() -> int:
    """Return the descriptor of a file in memory for one ``LeaseBoard``, which says nothing yet."""
    fd = os.memfd_create("lease", os.MFD_CLOEXEC)
    os.ftruncate(fd, mmap.PAGESIZE)
    return fd


def watch(launcher: int, board: LeaseBoard, wakeup: int, attempts: Cgroup) -> int:
    """Wait for the launcher, then kill everything that is left. Returns its exit status.

    ``wakeup``: what the launcher's ``board`` writes to.
    """
    status = _wait(launcher, board, wakeup)
    # What the kernel sends to the shims of a dead launcher is with them by now, so none of them
    # takes this for the end of its attempt.
    attempts.kill()
    kill_children()
    attempts.clear()
    return status & 0xFF


def kill_children(spared_session: int | None = None) -> None:
    """Kill every child, and the children that the dead leave to us, until there is none.

    Children in ``spared_session`` stay. So do those that became another user's: we may not signal
    them. Blocks.
    """
    out_of_reach: set[int] = set()
    while left := _children_outside(spared_session) - out_of_reach:
        for pid in left:
            try:
                proctree.kill_child(pid)
            except PermissionError:
                out_of_reach.add(pid)
        proctree.kill_below(left.__contains__)
        for pid in left - out_of_reach:
            with suppress(ChildProcessError):  # another thread was faster
                _reap(pid)


def _children_outside(session: int | None) -> set[int]:
    return {pid for pid in proctree.own_children() if session is None or _session(pid) != session}


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _reap(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _wait(launcher: int, board: LeaseBoard, wakeup: int) -> int:
    """Return the exit status of the launcher, which is killed if it does not obey the lease."""
    pidfd = os.pidfd_open(launcher)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    try:
        while pidfd not in (woken := [fd for fd, _ in poll.poll(wait_ms(board))]):
            if woken:
                os.eventfd_read(wakeup)
            if board.overdue(PATIENCE_OF_WATCHDOG):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                break
        return _reap(launcher)
    finally:
        os.close(pidfd)


def wait_ms(board: LeaseBoard) -> int | None:
    """Return how long to wait for news; None: any time, for nothing is left that must die."""
    if (due := board.due(PATIENCE_OF_WATCHDOG)) is None:
        return None
    left_s = due - boottime()
    return max(1, int((min(left_s, LOOK_AGAIN_S) if board.in_use else left_s) * 1000) + 1)
