"""The clock of leases: it goes on while the machine is suspended, as the ensemble's clocks do.

Two clocks are in use. What can be held too long, like a session's proof, goes by this one. Waits
(asyncio, poll) go by the monotonic clock, which stands still in a suspended machine. So a wait
for the end of a lease is cut into short ones, with a check after each.

The launcher of the worker's tasks, which imports nothing but its own folder, has the same function
(worker/supervisor/clock.py).
"""

import time

# Elsewhere than on Linux the monotonic clock has to do.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Return seconds since the machine was started, those included in which it was suspended."""
    return time.clock_gettime(_CLOCK)
