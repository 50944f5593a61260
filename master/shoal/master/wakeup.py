"""When a loop of a master has its next turn: at a notification, and regularly."""

import asyncio
import time
from contextlib import suppress


class Wakeup:
    """Wakes one loop as soon as it is notified, and at least every ``interval_s`` seconds.

    Notifications are hints and may be lost; they never put off the regular poll. Used on the event
    loop, by one waiter.
    """

    def __init__(self, interval_s: float, first_s: float = 0.0) -> None:
        """``first_s``: until the first regular poll, seconds."""
        self._interval_s = interval_s
        self._due_at = time.monotonic() + first_s  # of the next regular poll
        self._notified = asyncio.Event()

    def notify(self) -> None:
        """Wake the loop now, or as soon as it waits again."""
        self._notified.set()

    def due_in(self, delay_s: float) -> None:
        """Have the next regular poll in ``delay_s`` seconds, instead of after the interval."""
        self._due_at = time.monotonic() + delay_s

    async def wait(self) -> bool:
        """Wait until there is something to do; True: it is time for the regular poll."""
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
