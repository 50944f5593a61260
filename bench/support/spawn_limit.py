"""What starting the processes alone costs on this machine: the limit that nothing can beat.

One process is one ``sh -c true``, as a SHELL task of one line is.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.support.stamps import clock_script, count_script

SECONDS = 0.6
_PROGRAM = """
import os, sys, time
until, script, count = float(sys.argv[1]), sys.argv[2], 0
environment = {**os.environ, "SHOAL_TASK_INSTANCE_ID": "1"}
while time.monotonic() < until:
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", script], environment)
    os.waitpid(pid, 0)
    count += 1
print(count, sum(os.times()[:4]))
"""


@dataclass(frozen=True)
class SpawnLimit:
    """Starts of ``sh -c true`` a second, by one starter and by one for each processor.

    Processor time of a start, that of the starter included: of ``sh -c true``, and of what the
    tasks of the workloads run, which count themselves or write the time down.
    """

    one: float
    all: float
    starters: int
    cpu_ms: float
    count_ms: float
    clock_ms: float

    @property
    def share(self) -> float:
        """The part of the processors that the starters got; 1 on a machine without other work."""
        return min(1.0, self.all * self.cpu_ms / 1e3 / self.starters)

    @classmethod
    def median(cls, several: "Sequence[SpawnLimit]") -> "SpawnLimit":
        """Return the medians of several measurements."""
        middle = {
            name: statistics.median(getattr(one, name) for one in several)
            for name in ("one", "all", "cpu_ms", "count_ms", "clock_ms")
        }
        return cls(**middle, starters=several[0].starters)


def measure(seconds: float = SECONDS) -> SpawnLimit:
    """Start shells as fast as Python can, for some seconds with nothing else to do."""
    starters = len(os.sched_getaffinity(0))
    one, _ = _rate(1, seconds, "true")
    together, cpu_ms = _rate(starters, seconds, "true")
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        _, count_ms = _rate(starters, seconds / 2, count_script(Path(folder)))
        _, clock_ms = _rate(starters, seconds / 2, clock_script(Path(folder)))
    return SpawnLimit(one, together, starters, cpu_ms, count_ms, clock_ms)


def _rate(starters: int, seconds: float, script: str) -> tuple[float, float]:
    """Return starts a second, and the milliseconds of processor time of one start."""
    begin = time.monotonic() + 0.3  # all of them have started by then
    command = [sys.executable, "-S", "-I", "-c", _PROGRAM, str(begin + seconds), script]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(starters)]
    began = time.monotonic()
    answers = [process.communicate()[0].split() for process in processes]
    count, cpu_s = sum(int(a[0]) for a in answers), sum(float(a[1]) for a in answers)
    return count / (begin + seconds - began), cpu_s / count * 1e3
