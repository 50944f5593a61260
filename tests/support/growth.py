"""Does work take a time that grows with its input? Judged by processor time, in a few tries.

Other processes on the machine make single measurements several times too long, also in processor
time. So a limit is kept if any of some tries keeps it: what is quadratic keeps it never.
"""

import gc
import time
from collections.abc import Callable

_TRIES = 5


def processor_s(work: Callable[[], object]) -> float:
    """Return the processor time that ``work`` takes, in seconds, without collections of garbage.

    Work that makes many objects has them collected, which costs as much as the whole process has.
    """
    gc.disable()
    began = time.process_time()
    try:
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def shortest_s(work: Callable[[], object]) -> float:
    """Return the shortest processor time of some tries, in seconds."""
    return min(processor_s(work) for _ in range(_TRIES))


def keeps(limit_s: float, work: Callable[[], object]) -> bool:
    """Return whether ``work`` takes less than ``limit_s``: true at the first try that does."""
    return any(processor_s(work) < limit_s for _ in range(_TRIES))
