"""Where this worker may make control groups (cgroup v2) for its attempts, and what is left there.

The group of a worker is named after the file that it locks, by device and inode: processes of it
hold that file open for as long as they live, so no other worker of the machine has this name. What
carries the name when the file has just been locked is of an earlier life, and is killed, whatever
became of its environment.

Groups are used where they can be, and else done without, silently: the hierarchy may not be mounted
(cgroup v1), be read-only (most containers), or belong to others. Nor are they used if the worker's
own group has limits. Programs that size themselves by those, such as Java, look into the group that
they are in; in one below it they would find none.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

import structlog

from shoal.worker.supervisor.cgroups import Cgroup

log = structlog.get_logger()

_LIMITS = ("memory.max", "memory.high", "cpu.max")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def group_name(lock: int) -> str:
    """Return the name of the group of the worker that locks the file with that descriptor."""
    status = os.fstat(lock)
    return f"shoal-{status.st_dev:x}-{status.st_ino:x}"


class Hierarchy:
    """The mounted hierarchy as this process sees it."""

    def __init__(self, mounts: str, own: str) -> None:
        """``mounts`` is what /proc/self/mountinfo says, ``own`` what /proc/self/cgroup does."""
        self.root, top = _mount(mounts)
        self._own = next((line[3:] for line in own.splitlines() if line.startswith("0::")), None)
        self._top = top.rstrip("/")

    @classmethod
    def read(cls) -> "Hierarchy":
        """Return that of the calling process."""
        return cls(_text_of("/proc/self/mountinfo"), _text_of("/proc/self/cgroup"))

    @property
    def own(self) -> Path | None:
        """Folder of the group that this process is in; None if that is out of sight."""
        if (
            self.root is None
            or self._own is None
            or not f"{self._own}/".startswith(f"{self._top}/")
        ):
            return None
        below = self._own.removeprefix(self._top).strip("/")
        return None if ".." in below.split("/") else self.root / below

    def usable(self, name: str) -> Path | None:
        """Return where a group with that name can be made, and used; None if nowhere."""
        own = self.own
        if own is None or name in own.parts or _has_limits(own):
            return None
        folder = own / name
        try:
            folder.mkdir()
        except OSError:
            return None
        try:
            # A process is moved by who may write to the group that both places are in.
            needed = (own / "cgroup.procs", folder / "cgroup.procs", folder / "cgroup.kill")
            return folder if all(os.access(file, os.W_OK) for file in needed) else None
        finally:
            with suppress(OSError):
                folder.rmdir()

    def kill_former(self, name: str, patience_s: float) -> bool:
        """Kill what is in groups with that name; return whether all of it is dead.

        A group of another user is left alone. Blocks.
        """
        if name in (self._own or "").split("/"):
            return True  # such an attempt has started us
        all_dead = True
        for folder in self._named(name):
            cgroup = Cgroup(str(folder))
            if not os.access(folder / "cgroup.kill", os.W_OK):
                continue
            if count := _processes(folder):
                log.warning("killed processes of attempts without a supervisor", count=count)
            all_dead = cgroup.clear(patience_s) and all_dead
        return all_dead

    def _named(self, name: str) -> list[Path]:
        found = []
        for folder, below, _ in os.walk(self.root) if self.root is not None else ():
            if name in below:
                below.remove(name)
                found.append(Path(folder, name))
        return found


def _text_of(file: str) -> str:
    """Return what a file says; nothing if the kernel has no such file."""
    try:
        return os.fsdecode(Path(file).read_bytes())
    except OSError:
        return ""


def _mount(mounts: str) -> tuple[Path | None, str]:
    """Return where cgroup v2 is mounted, and which of its groups is seen there."""
    for line in mounts.splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            top, point = fields.split()[3:5]
            return Path(_ESCAPED.sub(_unescape, point)), _ESCAPED.sub(_unescape, top)
    return None, "/"


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))


def _has_limits(group: Path) -> bool:
    for name in _LIMITS:
        with suppress(OSError):  # the top has no such files, nor has one without the controller
            if not (group / name).read_text().startswith("max"):
                return True
    return False


def _processes(group: Path) -> int:
    """Return how many processes are in a group and in those below."""
    count = 0
    for folder, _, _ in os.walk(group):
        with suppress(OSError):
            count += len((Path(folder) / "cgroup.procs").read_text().split())
    return count
