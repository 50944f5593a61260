"""The folder of one worker: the same one after a restart, never one of two running workers.

::

    <data>/workers/<name>/<number>/   the first number that no running worker has
        agent.lock       locked by the agent alone
        processes.lock   locked by the agent and its launcher until all task processes are dead
        work/            one folder for each attempt that is not over
        logs/            see ``logs/files.py``
        spool/           see ``spool.py``
        resources/       see resources.py
        cluster          see cluster_file.py
"""

import array
import errno
import fcntl
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

import structlog

from shoal.core.errors import ShoalError
from shoal.worker.home.cgroups import Hierarchy, group_name
from shoal.worker.home.cluster_file import ClusterFile
from shoal.worker.home.leftovers import kill_leftovers
from shoal.worker.settings import WorkerSettings

log = structlog.get_logger()

PREDECESSOR_S = 30.0  # how long the processes of a killed worker may take to be killed too
# From linux/fs.h, for the usual processors.
_GET_FLAGS, _SET_FLAGS = 0x8008_6601, 0x4008_6602
_TOP_FOLDER = 0x0002_0000
_CHECK_EVERY_S = 0.02  # flock(2) cannot wait with a deadline


class HomeBusy(ShoalError):
    """The folder of a worker is still used by the processes of its predecessor."""

    def __init__(self, folder: Path, waited_s: float) -> None:
        self.folder = folder
        super().__init__(
            f"task processes of the worker that used {folder} before have not ended within "
            f"{waited_s:g} s; `fuser {folder / 'processes.lock'}` names them; end them and start "
            "the worker again"
        )


class WorkFolderTaken(ShoalError):
    """Another running worker keeps its attempts, or their results, in the same folder."""

    def __init__(self, folder: Path, setting: str = "work_dir") -> None:
        self.folder = folder
        super().__init__(
            f"another worker, with another data folder, uses the folder {folder}; give one of them "
            f"another {setting} or name"
        )


@dataclass(frozen=True)
class Folders:
    """Where a worker keeps what. All exist and are private (0700)."""

    work: Path
    logs: Path
    spool: Path
    spark_classes: Path  # see worker/spark
    resources: Path


class WorkerHome:
    """Hold the folder for the life of the ``with`` block. Blocks; use it before the event loop's
    work begins or through ``asyncio.to_thread``.

    ``name`` is unique among the running workers of the data folder and comes back after a
    restart: "<worker name>-<number>". ``processes_fd`` belongs into the launcher's ``held_fds``.
    ``cgroup`` is where attempts can have control groups; None: nowhere.
    """

    def __init__(self, data: Path, settings: WorkerSettings) -> None:
        self._settings = settings
        self._base = data.absolute() / "workers" / settings.name
        self.name = ""
        self.processes_fd = -1
        self._agent_fd = self._work_fd = self._spool_fd = -1
        self.folders: Folders
        self.cluster: ClusterFile
        self.cgroup: Path | None = None

    def __enter__(self) -> Self:
        for number in count(1):
            folder = self._base / str(number)
            _make(folder)
            self._agent_fd = _open_lock(folder / "agent.lock")
            if _lock(self._agent_fd):
                break
            os.close(self._agent_fd)
        self.name = f"{self._settings.name}-{number}"
        try:
            self._wait_for_predecessor(folder)
            self.folders = self._prepare(folder)
            self.cluster = ClusterFile(folder / "cluster")
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._unlock()

    def former_logs(self) -> list[Path]:
        """Return the folders of logs of all other workers that had, or have, our name."""
        own = self.folders.logs
        if self._settings.log_dir is not None:
            return []  # all of them have the same one
        return [one for one in sorted(self._base.glob("*/logs")) if one != own]

    def _unlock(self) -> None:
        for fd in (self.processes_fd, self._agent_fd, self._work_fd, self._spool_fd):
            if fd >= 0:
                os.close(fd)
        self.processes_fd = self._agent_fd = self._work_fd = self._spool_fd = -1

    def _wait_for_predecessor(self, folder: Path) -> None:
        """Return when nothing of the worker before us is alive. Raises HomeBusy."""
        self.processes_fd = _open_lock(folder / "processes.lock")
        deadline = time.monotonic() + PREDECESSOR_S
        logged = False
        while not _lock(self.processes_fd):
            if time.monotonic() >= deadline:
                raise HomeBusy(folder, PREDECESSOR_S)
            if not logged:
                log.info("waiting for the processes of the worker before", folder=str(folder))
                logged = True
            time.sleep(_CHECK_EVERY_S)

    def _prepare(self, folder: Path) -> Folders:
        work = self._settings.work_dir
        logs = self._settings.log_dir
        spool = self._settings.spool_dir
        folders = Folders(
            # Folders from the settings may be shared by the workers of a machine.
            work=folder / "work" if work is None else work / self.name,
            logs=folder / "logs" if logs is None else logs,
            spool=folder / "spool" if spool is None else spool / self.name,
            spark_classes=folder / "spark-classes",
            resources=folder / "resources",
        )
        spread_subfolders(folder)  # logs, which stay, away from what comes and goes
        for path in vars(folders).values():
            _make(path)
        spread_subfolders(folders.work)
        self._work_fd = os.open(folders.work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if not _lock(self._work_fd):  # of a worker with another data folder
            raise WorkFolderTaken(folders.work)
        self._spool_fd = os.open(folders.spool, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if not _lock(self._spool_fd):  # whose results would be reported to other masters
            raise WorkFolderTaken(folders.spool, "spool_dir")
        self._kill_former_groups(folder)
        kill_leftovers(folders.work)
        _discard_contents(folders.work)
        return folders

    def _kill_former_groups(self, folder: Path) -> None:
        """Kill what is left in the groups of an earlier life, and find a place for our own."""
        hierarchy, name = Hierarchy.read(), group_name(self.processes_fd)
        if not hierarchy.kill_former(name, PREDECESSOR_S):
            raise HomeBusy(folder, PREDECESSOR_S)
        if self._settings.cgroups == "auto":
            self.cgroup = hierarchy.usable(name)
        if self.cgroup is not None:
            log.info("attempts get control groups", folder=str(self.cgroup))


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _discard_contents(work: Path) -> None:
    """Remove what attempts of an earlier life left. They may have left a lot: not waited for."""
    rubbish = work / ".removed"
    rubbish.mkdir(mode=0o700, exist_ok=True)
    for path in work.iterdir():
        if path != rubbish:
            path.rename(rubbish / f"{path.name}.{time.time_ns()}")
    threading.Thread(target=shutil.rmtree, args=(rubbish, True), daemon=True).start()


def spread_subfolders(folder: Path) -> None:
    """Hint to the file system that the folders in ``folder`` have nothing to do with each other.

    As ``chattr +T``: ext4 puts the next ones, with their files, far from each other. Otherwise it
    gives a new file a free inode near those of its folder, and checks each that was freed there
    lately before it takes one; without a journal that is every file removed within minutes. So
    creating a file where thousands were removed would take ten times as long as elsewhere. Other
    file systems ignore the hint.
    """
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            flags = array.array("l", [0])
            fcntl.ioctl(fd, _GET_FLAGS, flags)
            flags[0] |= _TOP_FOLDER
            fcntl.ioctl(fd, _SET_FLAGS, flags)
        finally:
            os.close(fd)
