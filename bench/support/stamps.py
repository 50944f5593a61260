"""What the tasks of a run leave behind: a file each, so that lost and doubled ones are noticed.

Its name is the attempt's id. Where moments are compared the first instruction of the task writes
the time into it; where tasks are counted it stays empty, which costs no further process.
"""

import os
import shutil
import time
from itertools import count
from pathlib import Path

from bench.support.cluster import Running

PATIENCE_S = 60.0  # without any progress
_SHORTEST_PAUSE_S = 0.02
_SHARE = 0.02  # of a processor, that looking may cost at most
_CHECK_S = 5.0  # without progress, before we look whether the cluster is in order
_numbers = count(1)


class Stamps:
    """The folder of one run, whose name is that of its workflow as well."""

    def __init__(self, cluster: Running) -> None:
        self._cluster = cluster
        self.name = f"w{next(_numbers)}"
        self.folder = cluster.folder / "stamps" / self.name
        self.folder.mkdir(parents=True)

    @property
    def count_script(self) -> str:
        """Leave a file."""
        return count_script(self.folder)

    @property
    def clock_script(self) -> str:
        """Leave a file with the time."""
        return clock_script(self.folder)

    def wait(self, tasks: int) -> None:
        """Return when so many have begun.

        Asks the file system, not the API, which would have to work for that. Raises SystemExit if
        nothing goes on any more.
        """
        found, moved = 0, time.monotonic()
        checked = moved
        while found < tasks:
            began = time.monotonic()
            before, found = found, len(os.listdir(self.folder))
            now = time.monotonic()
            if found > before:
                moved = now
            elif now - moved > PATIENCE_S:
                raise SystemExit(
                    f"{self.name}: {found} of {tasks} tasks have begun, none of them in the last "
                    f"{PATIENCE_S:g} s. {self._cluster.rest.health()}"
                )
            elif now - max(moved, checked) > _CHECK_S:
                self._cluster.require_sound(self.name)
                checked = now
            time.sleep(max(_SHORTEST_PAUSE_S, (now - began) / _SHARE))

    def clocks_s(self) -> list[float]:
        """Return the moments that tasks wrote down, ascending: seconds since the epoch."""
        return sorted(int(path.read_text()) / 1e9 for path in self.folder.iterdir())

    def require(self, tasks: int) -> None:
        """Make sure that every task has run once."""
        found = len(os.listdir(self.folder))
        if found != tasks:
            raise SystemExit(f"{self.name}: {found} tasks have run instead of {tasks}")
        shutil.rmtree(self.folder)


def count_script(folder: Path) -> str:
    """Return a script that leaves an empty file in ``folder``."""
    return f': > "{folder}/$SHOAL_TASK_INSTANCE_ID"'


def clock_script(folder: Path) -> str:
    """Return a script that leaves a file with the time, in nanoseconds, in ``folder``."""
    return f'date +%s%N > "{folder}/$SHOAL_TASK_INSTANCE_ID"'
