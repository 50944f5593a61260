"""Long texts are rendered in one thread beside the event loop, one task at a time.

A task with a large script or large parameters takes up to half a second of processor time. In the
event loop it would stop all runs of the master for that long. In many threads it would take most
of the interpreter's time. Beside one thread the loop keeps at least half of it.

Tasks wait for the thread for a limited time per call of a worker (``Patience``). Then the worker
is told to ask again, and gets the payloads of its other tasks now.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, TypeVar

from shoal.core.errors import ShoalError

PATIENCE_S = 0.5  # of one call, for all of its tasks with long texts

T = TypeVar("T")


class TextsWait(ShoalError):
    """The texts of a task wait for those of other tasks."""

    retriable: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__("the master is rendering long texts of other tasks; ask again")


class Patience:
    """Seconds that one call may still spend on long texts."""

    def __init__(self, left_s: float = PATIENCE_S) -> None:
        self.left_s = left_s


class SideThread:
    """Runs one function after the other in a thread. For one event loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._threads = ThreadPoolExecutor(1, "texts")

    async def run(self, work: Callable[[], T], patience: Patience, *, begun: bool = False) -> T:
        """Return what ``work`` returns; the time that it takes is taken from ``patience``.

        Raises TextsWait if its turn does not come in time. Work on a task that has ``begun``
        waits as long as it has to: it would be repeated otherwise.
        """
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            if not begun and patience.left_s <= 0:
                raise TextsWait
            try:
                async with asyncio.timeout(None if begun else patience.left_s):
                    await self._turn.acquire()
            except TimeoutError:
                raise TextsWait from None
            try:
                return await loop.run_in_executor(self._threads, work)
            finally:
                self._turn.release()
        finally:
            patience.left_s -= loop.time() - began_s
