"""What the suite may do to the machine only where nobody else sees it.

A private mount name space holds a small file system for one worker. Everything in it goes with
the suite's last process, also if that is killed.
"""

import ctypes
import errno
import os
import subprocess
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_FILLER = "filler"


class DiskRefused(Exception):
    """A file system of our own cannot be mounted here: not root, or a container forbids it."""


def make_mounts_private() -> None:
    """Give this process, and those it starts from now on, mounts of their own.

    Call it in the main thread before any other is started. Raises DiskRefused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise DiskRefused(f"no mount name space of our own: {os.strerror(ctypes.get_errno())}")
    _run("mount", "--make-rprivate", "/")


class SmallDisk:
    """A file system of ``size_mb`` at ``folder`` that can be filled. Raises DiskRefused."""

    def __init__(self, folder: Path, size_mb: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0700", "shoal-chaos", str(folder))

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
        _run("umount", "--lazy", str(self.folder))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except OSError as error:
        raise DiskRefused(str(error)) from error
    if done.returncode != 0:
        raise DiskRefused(f"{' '.join(command)}: {done.stderr.strip()}")
