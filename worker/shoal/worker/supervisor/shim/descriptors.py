"""Descriptors of the launcher: pairs of pipes that leave some in reserve, and the tasks' limit.

The launcher needs a few descriptors to find and kill processes and to store how they ended. So it
starts nothing that would take the last ones.
"""

from __future__ import annotations

import errno
import os
import resource

#: Soft limit of the tasks, which is the one that the worker itself was started with.
LIMIT_VARIABLE = "SHOAL_TASK_DESCRIPTORS"
RESERVE = 24  # for walking through /proc, records, logs


def two_pipes() -> tuple[int, int, int, int]:
    """Return two pipes, each its read end first. Raises OSError, and leaves none open then."""
    first = os.pipe()
    try:
        second = os.pipe()
    except OSError:
        _close(first)
        raise
    fds = (*first, *second)
    if max(fds) >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE:
        _close(fds)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return fds


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)


def lower_limit() -> None:
    """Give this process, and what it starts, the limit of tasks."""
    if limit := os.environ.get(LIMIT_VARIABLE):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(int(limit), soft), hard))
