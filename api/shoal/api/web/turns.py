"""Turns of large requests: exports, comparisons, plans, searches, large bodies.

Each takes up to some seconds of processor time, in threads that share the interpreter with the
event loop. So two are under way at a time, one of each caller, and the loop keeps its share. Those
that come while a caller's own is under way wait, up to ``MOST_WAITING`` of them, for
``WAIT_FOR_OWN_S`` until the caller's own are over and for ``WAIT_S`` until those of others are. All
others get 429 with the time after which to try again. Other requests take no turn.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack, asynccontextmanager

from shoal.api.web.errors import TooManyRequests

MOST_AT_ONCE = 2  # of all callers
MOST_WAITING = 16  # of one caller: a page of the web UI asks for several results at once
# Clients wait 30 s for an answer. The own are few and end one after the other.
WAIT_FOR_OWN_S = 15.0
WAIT_S = 10.0
RETRY_AFTER_S = 2.0


class LargeRequests:
    """Gives turns. For one event loop."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(MOST_AT_ONCE)
        self._locks: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._there: Counter[Hashable] = Counter()  # under way or waiting, by caller

    @asynccontextmanager
    async def turn(self, caller: Hashable) -> AsyncIterator[None]:
        """Hold a turn of a caller in the block. Raises TooManyRequests."""
        if self._there[caller] > MOST_WAITING:
            raise TooManyRequests(
                f"{MOST_WAITING + 1} large requests of yours are under way or waiting (exports, "
                "comparisons, plans, searches, large bodies); send them one after the other",
                RETRY_AFTER_S,
            )
        self._there[caller] += 1
        try:
            async with AsyncExitStack() as stack:
                for whose, wait_s, place in (
                    ("your other", WAIT_FOR_OWN_S, self._locks[caller]),
                    ("other", WAIT_S, self._room),
                ):
                    try:
                        async with asyncio.timeout(wait_s):
                            await stack.enter_async_context(place)
                    except TimeoutError:
                        raise TooManyRequests(
                            f"{whose} large requests have taken {wait_s:g} s; try again later",
                            RETRY_AFTER_S,
                        ) from None
                yield
        finally:
            self._there[caller] -= 1
            if not self._there[caller]:
                del self._there[caller], self._locks[caller]
