"""The process that copies finished logs into the archive; what it is to do comes by its standard
input, as JSON: see ``Errand``. It answers with the reason if not all of them are there.

Beside the logs of an instance, ``.archived`` says which of them are in the archive, and with how
many bytes: a log that has grown since, because its task came here again, is copied again.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from shoal.core.errors import ShoalError, shortened
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.storage import StorageError
from shoal.worker.logs.files import LogNotFound, LogStore
from shoal.worker.logs.folders import LogFolder, opened
from shoal.worker.processes.work_files import ANSWER_FILE

_MARKS = ".archived"  # in the folder of an instance: lines of "task instance, bytes"
_LOG = re.compile(r"([0-9]{1,19})\.log")
_MARK = re.compile(r"([0-9]{1,19}) ([0-9]{1,19})")
_MOST_MARKS = 64 << 20  # bytes that are read; a task may have written there
_LONGEST_REASON = 2_000


@dataclass(frozen=True)
class LogUpload:
    """Logs to copy: those of ``folders``, (workflow, instance), but for the ``live`` attempts."""

    url: str
    cluster: str
    root: str
    folders: Sequence[tuple[str, int]]
    live: Set[int]

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps({**asdict(self), "live": sorted(self.live)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build it from a text that ``to_json`` made."""
        fields = json.loads(text)
        live = fields.pop("live")
        folders = [(str(workflow), int(instance)) for workflow, instance in fields.pop("folders")]
        return cls(**fields, folders=folders, live=frozenset(live))


def main() -> int:
    """Copy all logs; return the exit code."""
    errand = LogUpload.from_json(sys.stdin.read())
    store, archive = LogStore(Path(errand.root)), LogArchive(errand.url, errand.cluster)
    reason = ""
    for workflow, instance in errand.folders:
        folder = LogFolder(instance, workflow, store.root)
        try:
            for task in sorted(unarchived(folder) - errand.live):
                try:
                    _copy(store, archive, folder, task)
                except OSError as error:  # the others of this instance can be copied
                    reason = f"the log of task instance {task}: {error}"
        except StorageError as error:
            reason = str(error)
            break  # the next one would have to wait as long
        except (ShoalError, OSError) as error:
            reason = f"logs of workflow instance {instance}: {error}"
    if reason:
        Path(ANSWER_FILE).write_text(shortened(reason, _LONGEST_REASON), encoding="utf-8")
    return 1 if reason else 0


def _copy(store: LogStore, archive: LogArchive, folder: LogFolder, task: int) -> None:
    """Copy one log, which may be gone meanwhile. Raises StorageError, OSError."""
    instance = folder.workflow_instance_id
    try:
        with store.open_read(folder.workflow, instance, task) as log:
            copied = archive.put(instance, task, log)
    except LogNotFound:
        return
    _mark(folder, task, copied)


def unarchived(folder: LogFolder) -> set[int]:
    """Return the task instances whose logs in a folder are not in the archive. Blocks."""
    found = set()
    with suppress(FileNotFoundError, NotADirectoryError), opened(folder) as fd:
        marks = _marks(fd)
        for name in os.listdir(fd):
            if match := _LOG.fullmatch(name):
                with suppress(FileNotFoundError):
                    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    task = int(match[1])
                    if stat.S_ISREG(status.st_mode) and marks.get(task) != status.st_size:
                        found.add(task)
    return found


def _marks(folder: int) -> Mapping[int, int]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(_MARKS, flags, dir_fd=folder)
    except OSError:
        return {}
    try:
        # Whatever else a task has put there instead of a file is not a mark.
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        lines = os.read(fd, _MOST_MARKS).decode("ascii", "replace").splitlines() if is_file else []
    finally:
        os.close(fd)
    found = (_MARK.fullmatch(line) for line in lines)  # one may be torn
    return {int(match[1]): int(match[2]) for match in found if match}


def _mark(folder: LogFolder, task: int, size: int) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with opened(folder) as parent:
        fd = os.open(_MARKS, flags, 0o600, dir_fd=parent)
        try:
            os.write(fd, f"\n{task} {size}\n".encode())  # behind a line that may be torn
        finally:
            os.close(fd)


if __name__ == "__main__":
    sys.exit(main())
