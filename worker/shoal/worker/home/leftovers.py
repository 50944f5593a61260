"""Task processes of an earlier life of this worker that outlived all their watchers.

That takes a kill of agent, watchdog, launcher and shims in one instant, by one that knows
them all. What had no control group (``cgroups.py``) is known by its environment alone then: each
attempt has the path of its parameters file there, which lies in this worker's own folder. Names,
working directories and process numbers prove nothing, so they are not considered.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

import structlog

from shoal.worker.supervisor import proctree

log = structlog.get_logger()


def kill_leftovers(work: Path) -> int:
    """Kill what still runs of attempts whose folder was below ``work``; return how many it were.

    Only for the holder of the lock on the worker's folder, which has started nothing yet. Blocks.
    """
    marker = b"SHOAL_PARAMETERS=" + os.fsencode(work) + b"/"
    if os.fsencode(os.environ.get("SHOAL_PARAMETERS", "")).startswith(os.fsencode(work) + b"/"):
        return 0  # such a task has started us: its processes and ours cannot be told apart
    killed = 0
    while found := [process.pid for process in proctree.scan() if _kill(process.pid, marker)]:
        killed += len(found)  # once more: they may have forked meanwhile
    if killed:
        log.warning("killed processes of attempts without a supervisor", count=killed)
    return killed


def _kill(pid: int, marker: bytes) -> bool:
    """Kill that process if it carries ``marker``. A process of another user is left alone."""
    if not _carries(pid, marker):
        return False
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not _carries(pid, marker):  # now that the number can no longer change hands
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(pidfd)
    return True


def _carries(pid: int, marker: bytes) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return any(variable.startswith(marker) for variable in environment.split(b"\0"))
