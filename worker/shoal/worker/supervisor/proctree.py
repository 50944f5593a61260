"""Process trees of this machine: which descends from which, and signalling exactly one.

Everything is read from ``/proc`` (see proc_pid_stat(5)); names and command lines are never looked
at. A process is identified by its number *and* its start time, so a number that was given to a
new process in the meantime is never signalled. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections import namedtuple
from contextlib import suppress

PRECEDENCE = -20  # the highest: see setpriority(2)

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
_PIDFD_SIGNAL_PROCESS_GROUP = 1 << 2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_libc = ctypes.CDLL(None, use_errno=True)

# Fields 4, 5, 22, 48 and 49 of /proc/PID/stat, counted from behind the parenthesised name (field
# 2); the last two are the addresses of the command line.
_PARENT, _GROUP, _START, _ARGUMENTS, _ARGUMENTS_END = 1, 2, 19, 45, 46

#: One process. ``start`` is in clock ticks since boot.
Process = namedtuple("Process", "pid parent group start")


def prctl(option: int, value: int) -> None:
    """Set an attribute of the calling process, see prctl(2). Raises OSError."""
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")


def become_subreaper() -> None:
    """Adopt every orphan below the calling process. Survives execve, is not inherited by fork."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def rename(title: str) -> None:
    """Show the calling process as ``title``, in the list of processes and as its command line.

    Processes that guard each other need different names, or one careless ``pkill`` gets them all.
    """
    name = ctypes.create_string_buffer(title.encode()[:15])
    _libc.prctl(PR_SET_NAME, name, 0, 0, 0)
    show_command([title])


def show_command(arguments: Sequence[str]) -> None:
    """Show the calling process as if it had been started with ``arguments``.

    They are cut to the length of those that it was started with.
    """
    with open("/proc/self/stat", "rb", buffering=0) as file:
        stat = file.read()
    fields = stat[stat.rindex(b")") + 1 :].split()
    start, room = int(fields[_ARGUMENTS]), int(fields[_ARGUMENTS_END]) - int(fields[_ARGUMENTS])
    if room > 0:  # both are 0 where the kernel keeps them to itself
        shown = b"\0".join(os.fsencode(argument) for argument in arguments)
        ctypes.memmove(start, shown[: room - 1].ljust(room, b"\0"), room)


def read_process(pid: int) -> Process | None:
    """Return the process with that number, None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 1 :].split()  # the name itself may contain ")"
    return Process(pid, int(fields[_PARENT]), int(fields[_GROUP]), int(fields[_START]))


def own_children() -> list[int]:
    """Return the numbers of the caller's direct children, zombies included, oldest first.

    Exact for a single-threaded caller: a child leaves the list only when the caller reaps it.
    """
    pid = os.getpid()
    try:
        with open(f"/proc/self/task/{pid}/children", "rb", buffering=0) as file:
            return [int(child) for child in file.readall().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [process.pid for process in scan() if process.parent == pid]


def scan() -> list[Process]:
    """Return all processes of the machine. Not atomic: they start and end meanwhile."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def descendants(root: int, processes: list[Process]) -> list[Process]:
    """Return everything below ``root`` in the snapshot, parents before children."""
    return all_below([root], processes)


def all_below(roots: Iterable[int], processes: list[Process]) -> list[Process]:
    """Return everything below any of ``roots`` in the snapshot, parents before children."""
    children: dict[int, list[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found = [child for root in roots for child in children.get(root, ())]
    for process in found:  # grows while we walk it
        found.extend(children.get(process.pid, ()))
    return found


def signal_exactly(process: Process, *numbers: int) -> None:
    """Send signals to that very process; do nothing if it has ended. Raises PermissionError.

    The process is pinned by a descriptor first and compared afterwards, so its number cannot be
    given to another process in between.
    """
    _signal_pinned(process, numbers, 0)


def signal_group(leader: Process, *numbers: int) -> bool:
    """Send signals to the group of that very process, dead or alive; return whether that was done.

    It cannot be done once its parent has reaped it, nor on kernels before 6.9.
    """
    try:
        return _signal_pinned(leader, numbers, _PIDFD_SIGNAL_PROCESS_GROUP)
    except OSError:
        return False


def _signal_pinned(process: Process, numbers: Iterable[int], flags: int) -> bool:
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        now = read_process(process.pid)
        if now is None or now.start != process.start:
            return False
        for number in numbers:
            signal.pidfd_send_signal(pidfd, number, None, flags)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def kill_below(is_root: Callable[[int], bool]) -> None:
    """Send SIGKILL to the children of the caller that ``is_root`` picks, and all below them.

    Those of other users stay. It does not matter for correctness that new ones may come up
    meanwhile, but for speed: killed all together, processes that keep forking have no time to.
    """
    processes, me = scan(), os.getpid()
    roots = [p for p in processes if p.parent == me and is_root(p.pid)]
    for root in roots:
        with suppress(PermissionError):
            kill_child(root.pid)
    below = all_below([root.pid for root in roots], processes)
    family = {process.pid: process for process in (*roots, *below)}
    for process in below:
        with suppress(ProcessLookupError, PermissionError):
            _kill_relative(process, family)


def _kill_relative(process: Process, family: dict[int, Process]) -> None:
    """Kill ``process`` if its parent is the caller, or the one of ``family`` with that number.

    The list of processes takes a while to read, in which a number can change hands, and the
    children of its new owner would be taken for ours.
    """
    pidfd = os.pidfd_open(process.pid)
    try:
        now = read_process(process.pid)
        if now is None or now.start != process.start:
            return
        if now.parent != os.getpid():
            parent, known = read_process(now.parent), family.get(now.parent)
            if parent is None or known is None or parent.start != known.start:
                return
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def take_precedence() -> None:
    """Let the calling session run before others, if it may; returns without a word otherwise.

    A fork bomb of thousands leaves a process of equal rights next to nothing of the processor.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRECEDENCE)
    # Where the kernel shares the processor among sessions first (see sched(7), autogroup).
    with suppress(OSError), open("/proc/self/autogroup", "wb", buffering=0) as file:
        file.write(str(PRECEDENCE).encode())


def kill_child(pid: int) -> None:
    """Send SIGKILL to a direct child of the caller. Raises PermissionError.

    Safe by number: the number of a child stays taken until its parent has reaped it.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
