"""What wakes a master's loops: a notification that tells them, and their own regular look."""

import asyncio
import time
from contextlib import suppress


class Wakeup:
    """Wakes one loop as soon as it is notified, and at least every ``interval_s`` seconds.

    However often it is notified, the regular look comes in time: notifications are hints, and what
    rang unheard is found by that look alone. Used on the event loop, by one waiter.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._due_at = 0.0  # of the next regular look, monotonic; the first is at once
        self._notified = asyncio.Event()

    def notify(self) -> None:
        """Wake the loop now, or as soon as it waits again."""
        self._notified.set()

    async def wait(self) -> bool:
        """Wait until there is something to do; True: it is time for the regular look."""
        await wait_for(self._notified, self._due_at - time.monotonic())
        self._notified.clear()
        if time.monotonic() < self._due_at:
            return False
        self._due_at = time.monotonic() + self._interval_s
        return True


async def wait_for(event: asyncio.Event, timeout_s: float | None) -> None:
    """Wait for an event, ``timeout_s`` seconds at most.

    ``asyncio.wait_for`` would not do: before Python 3.12 it swallows a cancellation that meets
    the event.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
