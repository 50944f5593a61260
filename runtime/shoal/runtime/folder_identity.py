"""Which folder a data folder is, by something that a copy of it does not have.

Everything that lies in a folder travels with its copies: tokens, keys, the uid in the database. The
number of the folder's inode does not. It stays when the folder, or one above it, is renamed, and
is the same through links, bind mounts and relative paths, also in a container.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class FolderIdentity:
    """The inode of a folder, and the file system that it is in, by two numbers.

    ``filesystem`` is the file system's own number, which stays when the machine starts again; 0:
    it has none. ``device`` is the kernel's.
    """

    inode: int
    filesystem: int
    device: int

    @classmethod
    def of(cls, folder: Path) -> Self | None:
        """Return that of a folder; None: there is none, or it cannot be looked at."""
        try:
            found = os.stat(folder)
            return cls(found.st_ino, os.statvfs(folder).f_fsid, found.st_dev)
        except OSError:
            return None

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Read what ``str`` has made; None: it is something else."""
        parts = text.split(":")
        if len(parts) != 3 or not all(part.isascii() and part.isdecimal() for part in parts):
            return None
        return cls(*map(int, parts))

    def is_same(self, other: Self) -> bool:
        """Whether both are of one folder."""
        if self.inode != other.inode:
            return False
        if self.filesystem and other.filesystem:
            return self.filesystem == other.filesystem
        return self.device == other.device

    def __str__(self) -> str:
        return f"{self.inode}:{self.filesystem}:{self.device}"
