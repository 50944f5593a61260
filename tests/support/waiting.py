"""How long tests wait. Long, as it costs nothing where things work: the deadline only ends hopeless
waits, and must hold on a machine that is busy with other things and stands still for seconds.
"""

import asyncio
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

# Seconds; shorter where hopeless waits are many, as tests.mutations makes them.
VARIABLE = "SHOAL_TEST_DEADLINE_S"
DEADLINE_S = float(os.environ.get(VARIABLE, "100"))
# For servers to start, which is nothing that the code under test does.
START_S = 200.0
# Timeouts of ZooKeeper sessions. A standstill of half of it may cost a service what it holds.
SERVICE_SESSION_S = 10.0  # of masters and workers that tests kill, freeze and cut off
STEADY_SESSION_S = 40.0  # of sessions that are closed in order: nobody waits for it to pass


async def eventually(condition: Callable[[], object], timeout_s: float = DEADLINE_S) -> None:
    """Return as soon as ``condition`` holds. Raises AssertionError after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"still not true after {timeout_s} s"
        await asyncio.sleep(0.005)  # what we look at, other threads and processes change


def wait_past_midnight(needed_s: float = 120.0) -> None:
    """Let midnight (UTC) pass if it is nearer: what a test then does belongs to one day."""
    now = datetime.now(UTC)
    if (now + timedelta(seconds=needed_s)).date() != now.date():
        time.sleep((now.replace(hour=23, minute=59, second=59) - now).total_seconds() + 2)
