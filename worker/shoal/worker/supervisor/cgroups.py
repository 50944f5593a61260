"""Control groups (cgroup v2) of attempts: the first means of killing, where a worker may make some.

::

    <the worker's own group>/
        shoal-<...>/               of this worker, see ``home/cgroups.py``
            <launcher>-<shim>/     a shim, and what its attempt starts: one attempt after the other

To kill a group is one act of the kernel. It reaches whatever is in it, and so what is forked
meanwhile, or runs as another user. The tree below the shim stays the proof that nothing is left: a
process with enough rights can leave its group, but not its tree. Where there are no groups, the
tree alone is killed.

A shim joins once and stays, since joining waits for all processors (some 10 ms), and whatever is
forked below it is in its group from the first instant. No attempt pays for its group. No controller
is turned on, so nothing is limited or counted.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

CGROUP_VARIABLE = "SHOAL_CGROUP"  # the folder of the worker's group, for the launcher
#: How long the dead may take to leave their group. They leave it before their parent can reap
#: them, or, with some kernels, in the moment after.
LEAVING_S = 1.0
LOOK_AGAIN_S = 0.005


class Cgroup:
    """One group, which need not exist; ``folder`` is None where no groups can be made."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        #: Whether everything in it was killed.
        self.killed = False

    def child(self, name: str) -> Cgroup:
        """Return the group of that name in this one."""
        return Cgroup(None if self.folder is None else f"{self.folder}/{name}")

    def make(self) -> None:
        """Let it exist. Where that fails, it is as if there were no groups."""
        if self.folder is not None:
            with suppress(OSError):
                os.mkdir(self.folder)

    def join(self) -> None:
        """Make it, and move the calling process into it. May fail without a word, see ``make``."""
        self.make()
        self._write("cgroup.procs", b"0")

    def kill(self) -> bool:
        """Send SIGKILL to everything in it and in the groups below; return whether that was done.

        Does not wait.
        """
        done = self._write("cgroup.kill", b"1")
        self.killed = self.killed or done
        return done

    def holds(self, pid: int) -> bool:
        """Return whether that process is in it, or in a group below."""
        if self.folder is None:
            return False
        try:
            with open(f"/proc/{pid}/cgroup", "rb", buffering=0) as file:
                lines = file.readall().splitlines()
        except OSError:
            return False
        place = os.fsencode("/" + "/".join(self.folder.split("/")[-2:]) + "/")
        return any(line.startswith(b"0::") and place in line + b"/" for line in lines)

    def remove(self) -> bool:
        """Remove it with all groups below; return False if something in it is alive."""
        if self.folder is None:
            return True
        try:
            os.rmdir(self.folder)
        except FileNotFoundError:
            return True
        except OSError:  # tasks may have made groups of their own in it
            return self._remove_tree()
        return True

    def clear(self, patience_s: float = LEAVING_S) -> bool:
        """Kill what is in it, and remove it; return False if that takes longer. Blocks."""
        deadline = time.monotonic() + patience_s
        while not self.remove():
            self.kill()
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_AGAIN_S)
        return True

    def _remove_tree(self) -> bool:
        assert self.folder is not None
        for folder, _, _ in os.walk(self.folder, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True

    def _write(self, file: str, content: bytes) -> bool:
        if self.folder is None:
            return False
        try:
            fd = os.open(f"{self.folder}/{file}", os.O_WRONLY)
        except OSError:
            return False
        try:
            os.write(fd, content)
        except OSError:
            return False
        finally:
            os.close(fd)
        return True
