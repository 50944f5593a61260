"""The preloaded libraries change the clock and the syncs of a process, and only when told to."""

import os
import subprocess
import sys
from pathlib import Path

from tests.preload import ClockShift, SlowSync, together

PROGRAM = """
import os, sys, time
began = time.monotonic()
os.fsync(sys.stdin.fileno())
os.fdatasync(sys.stdin.fileno())
print(time.time(), time.monotonic() - began)
"""
HOUR_S, SYNC_S = 3600.0, 0.3


def seen(environment: dict[str, str], file: Path) -> tuple[float, float]:
    """Return what a process takes for the time, and how long two syncs take; in seconds."""
    with file.open("w+") as given:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **environment},
            stdin=given,
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        )
    now_s, took_s = map(float, done.stdout.split())
    return now_s, took_s


def test_libraries_together_shift_the_clock_and_slow_each_sync(tmp_path: Path) -> None:
    clock, sync = ClockShift(tmp_path), SlowSync(tmp_path)
    environment = together(clock.environment, sync.environment)
    file = tmp_path / "file"
    before_s = seen({}, file)[0]
    assert seen(environment, file)[0] < before_s + HOUR_S
    sync.delay(SYNC_S)
    clock.shift(HOUR_S)
    now_s, took_s = seen(environment, file)
    assert now_s >= before_s + HOUR_S
    assert took_s >= 2 * SYNC_S
    clock.shift(0.0)
    assert seen(environment, file)[0] < before_s + HOUR_S
