"""The clock of the lease, which the launcher and its watchdog share with the agent."""

from __future__ import annotations

import time

#: A wait may not be longer: it stands still while the machine is suspended, and the lease does not.
LOOK_AGAIN_S = 0.25


def boottime() -> float:
    """Return seconds since the machine was started, those included in which it was suspended.

    The same as ``shoal.coordination.session.boottime``, which the launcher cannot import.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)
