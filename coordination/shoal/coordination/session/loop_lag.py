"""How late an event loop is: work that blocks it delays everything else in its process."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

INTERVAL_S = 0.5  # between two measurements
REMEMBERED_S = 60.0  # a delay
NOTICEABLE_S = 0.5


class LoopLag:
    """Measures how much later than asked for a timer of this loop fires."""

    def __init__(self) -> None:
        self._delays: deque[tuple[float, float]] = deque()  # (when, seconds), those that are worst

    @property
    def worst_s(self) -> float:
        """The longest delay of the last minute, in seconds."""
        oldest_s = time.monotonic() - REMEMBERED_S
        return max((delay for at_s, delay in self._delays if at_s >= oldest_s), default=0.0)

    @property
    def level_s(self) -> float | None:
        """The longest delay, rounded down to a power of two; None: none that is noticeable.

        For what is published: it changes seldom.
        """
        worst_s = self.worst_s
        return None if worst_s < NOTICEABLE_S else 2.0 ** math.floor(math.log2(worst_s))

    async def run(self, on_change: Callable[[], None] = lambda: None) -> None:
        """Measure for ever; ``on_change`` is called when the level has changed."""
        level_s = self.level_s
        while True:
            asked_s = time.monotonic() + INTERVAL_S
            await asyncio.sleep(INTERVAL_S)
            self.note(time.monotonic(), time.monotonic() - asked_s)
            if level_s != (level_s := self.level_s):
                on_change()

    def note(self, at_s: float, delay_s: float) -> None:
        """Take a measurement. Shorter delays that came earlier will never be the longest."""
        while self._delays and self._delays[0][0] < at_s - REMEMBERED_S:
            self._delays.popleft()
        while self._delays and self._delays[-1][1] <= delay_s:
            self._delays.pop()
        self._delays.append((at_s, delay_s))
