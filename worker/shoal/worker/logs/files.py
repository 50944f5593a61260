"""The log files of attempts: addressed by ids, read in ranges, followed while they grow.

A log is a sequence of bytes, written by the task's processes themselves and never interpreted
here. No caller names a path: the three ids make it, and what they lead to must be a regular file
inside the root, reached without a symbolic link.
"""

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, ClassVar

from shoal.core.errors import ShoalError
from shoal.runtime.storage import cluster_folder

#: "project.workflow" behind the cluster's folder name and "@", which version 0.1.0 left out.
#: Project and workflow are slugs, so the whole is one file name that is no ".." or hidden.
WORKFLOW = re.compile(r"(?:(?P<cluster>[0-9a-f]{32})@)?[A-Za-z0-9][A-Za-z0-9_.-]{0,200}")
CHUNK = 64 * 1024  # bytes
POLL_S = 0.15  # how soon followers see new output; a file on a network cannot notify us


def log_workflow(cluster: str, project: str, workflow: str) -> str:
    """Return the first part of the addresses of a workflow's logs, a folder's name.

    ``cluster``: the uid; empty: not known, as in version 0.1.0.
    """
    name = f"{project}.{workflow}"
    return f"{cluster_folder(cluster)}@{name}" if cluster else name


class BadLogAddress(ShoalError, ValueError):
    """These ids cannot name a log."""


class LogNotFound(ShoalError):
    """There is no log (yet) for these ids."""

    retriable: ClassVar[bool] = True


class LogStore:
    """All logs below ``root``: ``{workflow}/{workflow instance}/{task instance}.log``.

    ``workflow`` is what ``log_workflow`` returns: it names the cluster, so clusters that share the
    folder, or reuse ids, do not meet.

    A log that may still grow shows no more than ``limit`` bytes: what is behind them will be cut
    off (see ``limit.py``).
    """

    def __init__(self, root: Path, limit: int | None = None) -> None:
        self.limit = limit
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root = root.resolve()

    def path(self, workflow: str, workflow_instance_id: int, task_instance_id: int) -> Path:
        """Return where that log lies, whether it exists or not. Raises BadLogAddress."""
        if not isinstance(workflow, str) or WORKFLOW.fullmatch(workflow) is None:
            raise BadLogAddress(
                f"{workflow!r} names no workflow's logs: expected [cluster@]project.workflow out "
                "of letters, digits, '_', '-' and '.'"
            )
        for number in (workflow_instance_id, task_instance_id):
            # bool is an int for Python, but no id
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise BadLogAddress(
                    f"{number!r} is not an instance id: expected a whole number >= 0"
                )
        return self.root.joinpath(workflow, str(workflow_instance_id), f"{task_instance_id}.log")

    def exists(self, workflow: str, workflow_instance_id: int, task_instance_id: int) -> bool:
        """Return whether there is such a log. Raises BadLogAddress."""
        try:
            self.open_read(workflow, workflow_instance_id, task_instance_id).close()
        except LogNotFound:
            return False
        return True

    def open_read(
        self, workflow: str, workflow_instance_id: int, task_instance_id: int
    ) -> BinaryIO:
        """Open the log for unbuffered reading. Raises BadLogAddress, LogNotFound.

        Every step is opened relative to the one before and follows no link, so a task that plants
        links among the logs gains nothing, not even by a race.
        """
        path = self.path(workflow, workflow_instance_id, task_instance_id)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(self.root, flags | os.O_DIRECTORY)
        try:
            *folders, name = path.relative_to(self.root).parts
            for part in folders:
                inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
                os.close(folder)
                folder = inner
            # A named pipe in the log's place must not block us.
            fd = os.open(name, flags | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            raise _not_found(path, error.strerror) from error
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise _not_found(path, "not a regular file")
        return open(fd, "rb", buffering=0)

    def read_range(
        self,
        workflow: str,
        workflow_instance_id: int,
        task_instance_id: int,
        offset: int,
        limit: int,
        *,
        growing: bool = False,
    ) -> tuple[bytes, int]:
        """Return at most ``limit`` bytes from ``offset``, and the size of the whole log now.

        ``growing`` says that the attempt is not over.

        Behind the end there are no bytes. Blocks for the disk. Raises ValueError for a negative
        number, BadLogAddress, LogNotFound.
        """
        if offset < 0 or limit < 0:
            raise ValueError(f"offset {offset} and limit {limit} must not be negative")
        with self.open_read(workflow, workflow_instance_id, task_instance_id) as file:
            size = os.fstat(file.fileno()).st_size
            if growing and self.limit is not None:
                size = min(size, self.limit)
            return _read_fully(file, offset, min(limit, max(0, size - offset))), size

    async def follow(
        self,
        workflow: str,
        workflow_instance_id: int,
        task_instance_id: int,
        finished: asyncio.Event,
        offset: int = 0,
    ) -> AsyncIterator[bytes]:
        """Yield what the log holds from ``offset`` on, in order, as it grows.

        Ends when ``finished`` is set, after everything written until then. A log that does not
        exist yet is waited for; if it never comes, nothing is yielded. Raises BadLogAddress.
        """
        address = (workflow, workflow_instance_id, task_instance_id)
        self.path(*address)
        while True:
            over = finished.is_set()  # checked before reading: what came earlier is read below
            while chunk := await asyncio.to_thread(self._read_chunk, address, offset, not over):
                offset += len(chunk)
                yield chunk
            if over:
                return
            try:
                async with asyncio.timeout(POLL_S):
                    await finished.wait()
            except TimeoutError:
                continue

    def _read_chunk(self, address: tuple[str, int, int], offset: int, growing: bool) -> bytes:
        try:
            return self.read_range(*address, offset, CHUNK, growing=growing)[0]
        except LogNotFound:
            return b""


def _not_found(path: Path, why: str | None) -> LogNotFound:
    instance, task = path.parent.name, path.stem
    return LogNotFound(
        f"no log of task instance {task} in instance {instance} of {path.parent.parent.name} on "
        f"this worker: {why}"
    )


def _read_fully(file: BinaryIO, offset: int, size: int) -> bytes:
    """Read ``size`` bytes at ``offset``; fewer only if the file has been cut short meanwhile."""
    pieces = []
    while size > 0 and (piece := os.pread(file.fileno(), size, offset)):
        pieces.append(piece)
        offset += len(piece)
        size -= len(piece)
    return b"".join(pieces)
