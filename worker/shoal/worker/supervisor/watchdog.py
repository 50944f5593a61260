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
#: How often a lease is looked for while there is none, and whether that one ends sooner that is
#: known.
LOOK_EVERY_S, LOOK_AGAIN_S = 0.2, 1.0


class LeaseBoard:
    """What the agent and the watchdog must know of the lease. The launcher writes, they read."""

    def __init__(self, fd: int) -> None:
        """``fd`` is that of a file in memory, see ``board_fd``. It may be closed afterwards."""
        self._shared = mmap.mmap(fd, mmap.PAGESIZE)

    def expect_end(self, deadline: float, patience_s: float) -> None:
        """Name the moment at which the launcher must begin to kill everything.

        It must be done ``patience_s`` later.
        """
        struct.pack_into("d", self._shared, 8, patience_s)
        struct.pack_into("d", self._shared, 0, deadline)

    def all_dead(self) -> None:
        """Nothing is left that must die."""
        struct.pack_into("d", self._shared, 0, 0.0)

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


def watch(launcher: int, board: LeaseBoard, attempts: Cgroup) -> int:
    """Wait for the launcher, then kill everything that is left. Returns its exit status."""
    status = _wait(launcher, board)
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


def _wait(launcher: int, board: LeaseBoard) -> int:
    """Return the exit status of the launcher, which is killed if it does not obey the lease."""
    pidfd = os.pidfd_open(launcher)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        while not poll.poll(_timeout_ms(board.due(PATIENCE_OF_WATCHDOG))):
            if board.overdue(PATIENCE_OF_WATCHDOG):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                break
        return _reap(launcher)
    finally:
        os.close(pidfd)


def _timeout_ms(due: float | None) -> int:
    until_s = LOOK_EVERY_S if due is None else min(due - boottime(), LOOK_AGAIN_S)
    return max(1, int(until_s * 1000) + 1)
