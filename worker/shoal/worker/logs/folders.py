"""The folders of logs on disk, oldest first, and their removal. Everything here blocks.

Tasks run as the same user and may have planted links: every step is opened relative to the one
before and follows none.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from shoal.worker.logs.files import WORKFLOW

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, order=True)
class LogFolder:
    """Where the logs of one workflow instance lie. Ids only grow, so they order by age."""

    workflow_instance_id: int
    workflow: str  # project.workflow
    root: Path


@dataclass(frozen=True)
class Content:
    """What was in a folder when it was read."""

    folder: LogFolder
    names: tuple[str, ...]  # of its files
    newest: float  # when one was last written to, in seconds since the Unix epoch
    size: int  # bytes on disk


def folders(root: Path) -> list[LogFolder]:
    """Return all folders of logs below ``root``, oldest first."""
    found = []
    with suppress(OSError), os.scandir(root) as workflows:
        for workflow in workflows:
            if WORKFLOW.fullmatch(workflow.name) and workflow.is_dir(follow_symlinks=False):
                with suppress(OSError), os.scandir(workflow.path) as instances:
                    found += [
                        LogFolder(int(one.name), workflow.name, root)
                        for one in instances
                        if one.name.isascii() and one.name.isdigit()
                    ]
    return sorted(found)


def content(folder: LogFolder) -> Content | None:
    """Return what lies in a folder; None if it has gone, or is none."""
    try:
        with opened(folder) as fd:
            newest, size = os.fstat(fd).st_mtime, 0
            names = os.listdir(fd)
            for name in names:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    newest, size = max(newest, found.st_mtime), size + found.st_blocks * 512
    except OSError:
        return None
    return Content(folder, tuple(names), newest, size)


def remove(found: Content) -> bool:
    """Remove the files that were found; return whether all of them have gone.

    What was created since stays, and its folder with it.
    """
    with suppress(OSError), opened(found.folder) as fd:
        for name in found.names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
        folder = found.folder
        with suppress(OSError):
            os.rmdir(folder.root / folder.workflow / str(folder.workflow_instance_id))
        return True
    return False


@contextmanager
def opened(folder: LogFolder) -> Iterator[int]:
    """Open a folder of logs; give its descriptor. Raises OSError."""
    fd = os.open(folder.root, _FOLDER)
    try:
        for part in (folder.workflow, str(folder.workflow_instance_id)):
            inner = os.open(part, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)
