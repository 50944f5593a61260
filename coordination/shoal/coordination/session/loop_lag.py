"""How late an event loop is, and its longest step: work that blocks it delays its whole process.

A timer shows both. It fires late when a step holds the loop, but also when the machine is busy or
was suspended. The processor time that the loop's thread used meanwhile tells these apart, so the
smaller of delay and processor time is a step of the loop. A step that begins before the timer is
due is seen only from there on: up to one interval of it is missed, 10 ms while the loop is busy
and 500 ms at the first step after a pause. Where the machine is overloaded and the loop is busy,
several steps may count as one.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

# Between two measurements; short ones only while the loop has work, as each wakes the process.
BUSY_INTERVAL_S, IDLE_INTERVAL_S = 0.01, 0.5
_BUSY_SHARE = 0.05  # of processor time; measuring itself takes less than 0.01
REMEMBERED_S = 60.0  # a delay
RECENT_S = 300.0  # a step
NOTICEABLE_S = 0.5  # a delay
NOTICEABLE_STEP_S = 0.125


class Longest:
    """The longest of many durations, seconds: of the last ``remembered_s``, and of all."""

    def __init__(self, remembered_s: float) -> None:
        self.ever_s = 0.0
        self._remembered_s = remembered_s
        self._found: deque[tuple[float, float]] = deque()  # (when, how long), the longest first

    @property
    def recent_s(self) -> float:
        """The longest that is not forgotten; 0 if there is none."""
        oldest_s = time.monotonic() - self._remembered_s
        return next((length_s for at_s, length_s in self._found if at_s >= oldest_s), 0.0)

    def note(self, at_s: float, length_s: float) -> None:
        """Take one. Shorter ones that came earlier will never be the longest."""
        while self._found and self._found[0][0] < at_s - self._remembered_s:
            self._found.popleft()
        while self._found and self._found[-1][1] <= length_s:
            self._found.pop()
        self._found.append((at_s, length_s))
        self.ever_s = max(self.ever_s, length_s)


class LoopLag:
    """Measures how much later than asked for a timer of this loop fires, and the longest steps."""

    def __init__(self) -> None:
        self.delays = Longest(REMEMBERED_S)
        self.steps = Longest(RECENT_S)  # in processor time of the loop's thread

    @property
    def published(self) -> dict[str, float]:
        """What members publish: seconds, rounded down to a power of two so that they change seldom.

        Has nothing that is not noticeable.
        """
        found = {
            "loop_lag_s": (self.delays.recent_s, NOTICEABLE_S),
            "longest_step_s": (self.steps.recent_s, NOTICEABLE_STEP_S),
            "longest_step_ever_s": (self.steps.ever_s, NOTICEABLE_STEP_S),
        }
        return {
            name: 2.0 ** math.floor(math.log2(length_s))
            for name, (length_s, noticeable_s) in found.items()
            if length_s >= noticeable_s
        }

    async def run(self, on_change: Callable[[], None] = lambda: None) -> None:
        """Measure for ever, in the loop's thread; ``on_change``: ``published`` has changed."""
        published, interval_s = self.published, IDLE_INTERVAL_S
        while True:
            due_s, used_before_s = time.monotonic() + interval_s, time.thread_time()
            await asyncio.sleep(interval_s)
            now_s, used_s = time.monotonic(), time.thread_time() - used_before_s
            self.delays.note(now_s, now_s - due_s)
            self.steps.note(now_s, min(now_s - due_s, used_s))
            is_busy = used_s > _BUSY_SHARE * interval_s
            interval_s = BUSY_INTERVAL_S if is_busy else IDLE_INTERVAL_S
            if published != (published := self.published):
                on_change()
