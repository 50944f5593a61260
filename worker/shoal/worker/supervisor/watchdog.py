"""Watchdogs: processes above the launcher that kill what it leaves, or the launcher if it hangs.

There are two, each the parent of the next: *outer*, *inner*, launcher. All are subreapers,
so whatever loses its parents comes to the innermost one that lives, which kills it. Any two of the
agent and these three may die in the same instant, and so may all three: then the agent is the
subreaper of last resort (``launching.py``). A watchdog need not know anything about attempts.

A launcher that does not act on its lease (it is stopped, or hangs in the kernel) is killed by a
guard shortly after: the moment is in memory that they share. All times are those of
the lease's clock (clock.py).
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

OUTER, INNER = "task-watchdog", "shoal-watchdog"  # names of the processes
#: The launcher may take the patience of its agent to kill everything at the end of the lease; the
#: inner watchdog steps in after that, and the outer watchdog after twice as long.
PATIENCE = {INNER: 1, OUTER: 2}
#: How often a watchdog checks for a lease while there is none, and whether that it knows ends
#: sooner.
LOOK_EVERY_S, LOOK_AGAIN_S = 0.2, 1.0


class LeaseBoard:
    """What watchdogs must know of the launcher. It writes, they read; made before they fork."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    def show(self, launcher_pid: int) -> None:
        """Make the launcher's number known."""
        struct.pack_into("q", self._shared, 8, launcher_pid)

    def expect_end(self, deadline: float, patience_s: float) -> None:
        """Name the moment at which the launcher must begin to kill everything.

        It must be done ``patience_s`` later.
        """
        struct.pack_into("d", self._shared, 16, patience_s)
        struct.pack_into("d", self._shared, 0, deadline)

    def all_dead(self) -> None:
        """Nothing is left that must die."""
        struct.pack_into("d", self._shared, 0, 0.0)

    def due(self, patience: int) -> float | None:
        """Return when a watchdog steps in that waits ``patience`` times as long; None: not now."""
        deadline = float(struct.unpack_from("d", self._shared, 0)[0])
        patience_s = float(struct.unpack_from("d", self._shared, 16)[0])
        return deadline + patience * patience_s if deadline else None

    @property
    def launcher_pid(self) -> int:
        return int(struct.unpack_from("q", self._shared, 8)[0])


def watch(child: int, board: LeaseBoard, patience: int) -> int:
    """Wait for ``child``, then kill everything that is left. Returns its exit status."""
    status = _wait(child, board, patience)
    # If a watchdog below us has died, the launcher is still ending in good order: it has seen that.
    launcher = board.launcher_pid
    if launcher != child and launcher in proctree.own_children():
        _wait(launcher, board, patience)
    kill_children()
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


def _wait(child: int, board: LeaseBoard, patience: int) -> int:
    """Return the exit status of ``child``, which is killed if the lease is not obeyed."""
    pidfd = os.pidfd_open(child)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        while not poll.poll(_timeout_ms(board.due(patience))):
            due = board.due(patience)
            if due is not None and boottime() >= due:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                break
        return _reap(child)
    finally:
        os.close(pidfd)


def _timeout_ms(due: float | None) -> int:
    until_s = LOOK_EVERY_S if due is None else min(due - boottime(), LOOK_AGAIN_S)
    return max(1, int(until_s * 1000) + 1)
