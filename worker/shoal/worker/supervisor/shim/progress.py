"""How far an attempt is, in memory that its shim shares with the launcher.

It costs no system call, cannot get stuck, and the launcher can read it when the shim is dead.
"""

from __future__ import annotations

import mmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource

#: STARTING: the program may run or not. RUNNING: it does. ENDED: it has ended, but what it
#: left may. ALONE: nothing of the attempt is alive; its end is being stored.
STARTING, RUNNING, ENDED, ALONE = range(4)

# Places; all values are 8-byte floats, which hold process numbers and wait statuses exactly.
_STAGE, _WARNED, _PID, _STATUS, _ENDED_AT, _MAX_RSS_KB, _CPU_S, _STARTED, _STARTED_AT = range(9)


class ProgressPage:
    """The launcher begins and warns, the shim writes all else. Made before the shim is forked.

    ``started`` is in seconds since the Unix epoch, what is named ``*_at`` in monotonic seconds.
    """

    def __init__(self) -> None:
        self._values = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")

    def begin(self, stage: int, started: float, started_at: float) -> None:
        """Wipe it for another attempt."""
        values = self._values
        values[_WARNED] = values[_PID] = values[_MAX_RSS_KB] = values[_CPU_S] = 0.0
        values[_STARTED], values[_STARTED_AT] = started, started_at
        values[_STAGE] = stage

    def warn(self) -> None:
        """The reason to end the attempt is about to be sent, or has been."""
        self._values[_WARNED] = 1.0

    def run(self, pid: int) -> None:
        """The program runs; ``pid`` is its number."""
        self._values[_PID] = pid
        self._values[_STAGE] = RUNNING

    def end(self, status: int, ended_at: float) -> None:
        """The program has ended with that wait status."""
        self._values[_STATUS], self._values[_ENDED_AT] = status, ended_at
        self._values[_STAGE] = ENDED

    def charge(self, usage: resource.struct_rusage) -> None:
        """Note what the program has used."""
        self._values[_MAX_RSS_KB] = usage.ru_maxrss
        self._values[_CPU_S] = usage.ru_utime + usage.ru_stime

    def clear(self) -> None:
        """Nothing of the attempt is alive."""
        self._values[_STAGE] = ALONE

    @property
    def stage(self) -> int:
        return int(self._values[_STAGE])

    @property
    def warned(self) -> bool:
        return self._values[_WARNED] != 0

    @property
    def pid(self) -> int:
        """The program's number; 0 while it is starting."""
        return int(self._values[_PID])

    @property
    def started(self) -> float:
        return self._values[_STARTED]

    @property
    def took_s(self) -> float:
        # From the monotonic clock: a step of the wall clock never makes a negative duration.
        return self._values[_ENDED_AT] - self._values[_STARTED_AT]

    @property
    def status(self) -> int:
        return int(self._values[_STATUS])

    @property
    def max_rss_kb(self) -> int:
        return int(self._values[_MAX_RSS_KB])

    @property
    def cpu_s(self) -> float:
        return self._values[_CPU_S]
