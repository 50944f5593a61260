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

from shoal.runtime.storage import cluster_folder
from shoal.worker.logs.files import WORKFLOW

OWNER = ".owner"  # in the folder of logs: see _owner_of_unnamed
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, order=True)
class LogFolder:
    """Where the logs of one workflow instance lie. Ids only grow, so they order by age."""

    workflow_instance_id: int
    workflow: str  # see log_workflow
    root: Path

    def belongs_to(self, cluster: str) -> bool:
        """Whether the logs are those of the cluster with this uid. Blocks. Raises OSError.

        Logs of version 0.1.0 hold no cluster in their names: all in a folder are the first
        cluster's that asks. ``cluster`` empty: a master of version 0.1.0 names none.
        """
        if not cluster:
            return True
        match = WORKFLOW.fullmatch(self.workflow)
        owner = match["cluster"] if match else None
        return (owner or _owner_of_unnamed(self.root, cluster)) == cluster_folder(cluster)


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


def _owner_of_unnamed(root: Path, cluster: str) -> str:
    """Return the folder name of the cluster that owns the logs without one in their names."""
    mark = root / OWNER
    try:
        fd = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return mark.read_text("ascii", "replace").strip()
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(cluster_folder(cluster))
    return cluster_folder(cluster)


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
