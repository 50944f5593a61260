"""Other work for a machine: what it does to figures is known before somebody else finds out."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_EACH = 4  # processes for each processor: we get a fifth of it


@contextmanager
def other_work() -> Iterator[None]:
    """Keep all processors busy with something else in the block."""
    loops = len(os.sched_getaffinity(0)) * _EACH
    command = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
