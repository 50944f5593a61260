"""A place to run attempts in, and a check for survivors that shares nothing with our own walking.

Every process of an attempt inherits a descriptor with a shared lock on one file. The exclusive
lock cannot be taken while any of them lives, however it has detached or cleared its environment.
"""

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from shoal.worker.processes.program import LaunchRequest
from tests.support.waiting import eventually as eventually

PATH = os.environ["PATH"]


class Site:
    """Folders for attempts below ``root``, with a space and an umlaut in their names."""

    def __init__(self, root: Path) -> None:
        self.work = root / "wörk dir"
        self.work.mkdir(parents=True, exist_ok=True)
        self.logs = root / "log files"
        self.spool = root / "späool"
        self.lock = self.work / "marker.lock"
        self.lock.touch()

    def request(self, attempt_id: str, *argv: str, **fields: Any) -> LaunchRequest:
        env: Mapping[str, str] = fields.pop("env", {"PATH": PATH})
        settings: dict[str, Any] = {
            "cwd": self.work,
            "log_path": self.logs / f"{attempt_id}.log",
            "record_path": self.spool / f"{attempt_id}.json",
        }
        return LaunchRequest(id=attempt_id, argv=argv, env=env, **(settings | fields))

    def marked(self, attempt_id: str, script: str, **fields: Any) -> LaunchRequest:
        """A shell script all of whose processes hold the marker lock (on descriptor 9)."""
        script = f"exec 9<marker.lock; flock -s 9; {script}"
        return self.request(attempt_id, "/bin/sh", "-c", script, **fields)

    def log(self, attempt_id: str) -> bytes:
        with suppress(FileNotFoundError):
            return (self.logs / f"{attempt_id}.log").read_bytes()
        return b""

    def survivors(self) -> bool:
        """Whether any marked process is alive."""
        with self.lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    async def until_ready(self, attempt_id: str, count: int = 1) -> None:
        """Wait until ``count`` processes of the attempt have said that they run."""
        await eventually(lambda: self.log(attempt_id).count(b"ready\n") >= count)
        assert self.survivors(), "the marker does not notice living processes"


def alive(pid: int) -> bool:
    """Whether that process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def parent_of(pid: int) -> int:
    """Return the number of that process's parent."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def shown(pid: int, file: str) -> str:
    """Return what that file in ``/proc`` shows of the process."""
    return Path(f"/proc/{pid}/{file}").read_bytes().strip(b"\0\n").decode()
