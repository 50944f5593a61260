"""Long runs of the suites' own programs, which end in order when they are asked to."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def guarded(work: Coroutine[Any, Any, T]) -> T:
    """Do the work; SIGINT and SIGTERM stop it in order, with all its processes."""
    working = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, working.cancel)
    return await working
