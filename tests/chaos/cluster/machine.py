"""The machine of one server of ZooKeeper or PostgreSQL: a clock and a disk that can be hurt."""

import os
import subprocess
from pathlib import Path

from tests.chaos.cluster.sandbox import Refused, SmallDisk
from tests.preload import ClockShift, SlowSync, together


class Machine:
    """Clock, syncs and disk of one server; each is None if this computer does not allow it.

    ``folder`` has the libraries that are preloaded, ``data`` is where the small disk is mounted;
    ``size_mb`` 0: the disk is the computer's own.
    """

    def __init__(self, folder: Path, data: Path, size_mb: int) -> None:
        self.clock: ClockShift | None = None
        self.sync: SlowSync | None = None
        self.disk: SmallDisk | None = None
        self.libraries_refused = self.disk_refused = ""  # why there are none
        try:
            self.clock, self.sync = ClockShift(folder), SlowSync(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            self.libraries_refused = f"no library to preload: {error}"
        try:
            if not size_mb:
                raise Refused("the cluster was set up without small disks")
            self.disk = SmallDisk(data, size_mb)
        except Refused as error:
            self.disk_refused = str(error)

    @property
    def environment(self) -> dict[str, str]:
        """What the server is started with."""
        shims = [shim.environment for shim in (self.clock, self.sync) if shim is not None]
        return {**os.environ, **together(*shims)}

    def close(self) -> None:
        """Unmount the disk: what was on it is gone. The server has ended."""
        disk, self.disk = self.disk, None
        if disk is not None:
            disk.unmount()
