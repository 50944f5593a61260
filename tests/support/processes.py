"""Processes that belong to a data folder."""

import os
import time
from pathlib import Path

import psutil

from tests.support.waiting import DEADLINE_S


def family(data: Path) -> set[int]:
    """Every process whose command line or environment names the data folder."""
    found = set()
    for process in psutil.process_iter():
        try:
            text = [*process.cmdline(), process.cwd(), *process.environ().values()]
        except (psutil.Error, OSError):
            continue
        if process.pid != os.getpid() and any(str(data) in part for part in text):
            found.add(process.pid)
    return found


def nothing_left(data: Path) -> bool:
    """Wait a moment for the last processes to go."""
    deadline = time.monotonic() + DEADLINE_S
    while family(data):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
