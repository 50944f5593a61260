"""What the suite may do to the machine only where nobody else sees it.

Mounts and a network of our own: a small file system for one worker, and hosts (``hosts``) that can
be cut off. Both go with the suite's last process, also if that is killed.
"""

import ctypes
import errno
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_CLONE_NEWNET = 0x40000000
_CGROUPS = Path("/sys/fs/cgroup")
_FILLER = "filler"


class Refused(Exception):
    """The machine does not let us: not root, a container forbids it, or a program is missing."""


def make_mounts_private() -> None:
    """Give this process, and those it starts from now on, mounts of their own.

    Call it in the main thread before any other is started. Raises Refused.
    """
    _unshare(_CLONE_NEWNS, "mounts")
    run("mount", "--make-rprivate", "/")


def make_network_private() -> None:
    """Give this process, and those it starts from now on, a loopback network of their own.

    They see no other. Call it in the main thread before any other is started. Raises Refused.
    """
    run("ip", "-Version")  # without it the new network could not even be switched on
    with open("/proc/self/ns/net") as before:
        unshare_network()
        try:
            run("ip", "link", "set", "lo", "up")
        except Refused:
            _libc().setns(before.fileno(), _CLONE_NEWNET)
            raise


def unshare_network() -> None:
    """Give this thread, and what it starts from now on, an empty network. Raises Refused."""
    _unshare(_CLONE_NEWNET, "network")


def run(*command: str, given: str = "") -> str:
    """Run a program with ``given`` as its input; return what it prints. Raises Refused."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(str(error)) from error
    if done.returncode != 0:
        raise Refused(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class FewProcesses:
    """A control group of one process and all that it starts from now on: it may start no more.

    Raises Refused: there is no group that counts processes, or it is not ours to make.
    """

    def __init__(self, pid: int) -> None:
        self._parent = _pids_group(pid)
        self._group = self._parent / f"shoal-chaos-{pid}"
        try:
            self._group.mkdir()
            (self._group / "cgroup.procs").write_text(str(pid))
            (self._group / "pids.max").write_text("0")  # what is there stays
        except OSError as error:
            self.free()
            raise Refused(f"no group of processes of our own: {error}") from error

    @property
    def refused(self) -> int:
        """How many processes and threads could not be started so far."""
        words = (self._group / "pids.events").read_text().split()
        return int(words[words.index("max") + 1])

    def free(self) -> None:
        """End it; its processes go back to where they came from."""
        for _ in range(100):
            with suppress(OSError):  # one that ends while it is moved
                (self._group / "pids.max").write_text("max")
                for pid in (self._group / "cgroup.procs").read_text().split():
                    (self._parent / "cgroup.procs").write_text(pid)
                self._group.rmdir()
            if not self._group.exists():
                return
            time.sleep(0.02)


def _pids_group(pid: int) -> Path:
    """Return the folder of the group that counts a process. Raises Refused."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "pids" in controllers.split(","):
            return _CGROUPS / "pids" / path.lstrip("/")
    # With version 2 a group with processes has no groups below it, but for the root.
    with suppress(OSError):
        if "pids" in (_CGROUPS / "cgroup.subtree_control").read_text().split():
            return _CGROUPS
    raise Refused("no control group counts processes")


class SmallDisk:
    """A file system of ``size_mb`` at ``folder`` that can be filled. Raises Refused."""

    def __init__(self, folder: Path, size_mb: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0700", "shoal-chaos", str(folder))

    def fill(self) -> int:
        """Use up all that is free; return how many bytes that was."""
        used = 0
        with (self.folder / _FILLER).open("ab", buffering=0) as filler:
            for size in (2**20, 4096, 1):
                block = b"\0" * size
                try:
                    while True:
                        used += filler.write(block)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
        return used

    def free(self) -> None:
        """Give the space back."""
        (self.folder / _FILLER).unlink(missing_ok=True)

    def unmount(self) -> None:
        run("umount", "--lazy", str(self.folder))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _unshare(what: int, name: str) -> None:
    if _libc().unshare(what) != 0:
        raise Refused(f"no {name} of our own: {os.strerror(ctypes.get_errno())}")
