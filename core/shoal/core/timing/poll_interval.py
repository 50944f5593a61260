"""When a task that waits for something looks again.

A worker says how many seconds from now; a master keeps that within bounds.
"""

import math

#: Seconds between two looks: each is a process and a row.
SHORTEST_S = 1.0
LONGEST_S = 7 * 86_400.0
_UNKNOWN_S = 60.0  # the worker did not say


def bounded(again_s: float) -> float:
    """Return the seconds until the next look, of what a worker has said."""
    if not math.isfinite(again_s) or again_s <= 0:
        return _UNKNOWN_S
    return min(max(again_s, SHORTEST_S), LONGEST_S)


def interval_s(every_s: float, back_off: float, longest_s: float, looks: int) -> float:
    """Return the seconds after look number ``looks`` (from 0): ``every_s * back_off ** looks``.

    At most ``longest_s``; ``back_off`` is at least 1.
    """
    # By logarithms: the power itself may be too large for a number.
    if looks * math.log(back_off) >= math.log(longest_s / every_s):
        return max(every_s, longest_s) if back_off > 1 else every_s
    return every_s * back_off**looks
