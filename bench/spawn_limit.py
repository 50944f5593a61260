"""What starting the processes alone costs on this machine: the limit that nothing can beat.

One process is one ``sh -c true``, as a SHELL task of one line is.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass

SECONDS = 1.0
_PROGRAM = """
import os, sys, time
until, count = float(sys.argv[1]), 0
while time.monotonic() < until:
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "true"], os.environ)
    os.waitpid(pid, 0)
    count += 1
print(count)
"""


@dataclass(frozen=True)
class SpawnLimit:
    """Starts of ``sh -c true`` a second, by one starter and by one for each processor."""

    one: float
    all: float
    starters: int


def measure(seconds: float = SECONDS) -> SpawnLimit:
    """Start shells as fast as Python can, for some seconds with nothing else to do."""
    starters = len(os.sched_getaffinity(0))
    return SpawnLimit(_rate(1, seconds), _rate(starters, seconds), starters)


def _rate(starters: int, seconds: float) -> float:
    begin = time.monotonic() + 0.3  # all of them have started by then
    command = [sys.executable, "-S", "-I", "-c", _PROGRAM, str(begin + seconds)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(starters)]
    began = time.monotonic()
    count = sum(int(process.communicate()[0]) for process in processes)
    return count / (begin + seconds - began)
