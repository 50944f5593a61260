"""Blocking calls beside the event loop, several on one trip to a thread.

A trip costs as much as a dozen small files, most of it for handing the interpreter over and back.
So calls that are asked for in the same turn of the loop, such as for attempts that were granted
together, travel together, one after the other. Later ones do not wait for them.

Short calls make no trip at all while the disk is quick. When one has shown that it is not, the
next ones do, the longer the more time it took: the loop waits for a slow disk from time to time,
not for every file.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

THREADS = 8  # trips at once; only a slow disk keeps more than one or two busy
MOST_AT_ONCE = 16  # calls on one trip
SHORT_S = 0.005  # longer, and the loop's other work is late; 99 % take less on a busy disk
AVOID_FOR = 20  # times what such a call took: of all its time the loop waits for a twentieth

_Call = tuple[asyncio.Future[Any], Callable[[], Any]]
_Outcome = tuple[asyncio.Future[Any], Any, BaseException | None]


class DiskWork:
    """Runs blocking calls in threads of its own. Belongs to one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="disk")
        self._waiting: list[_Call] = []
        self._avoid_until = 0.0  # monotonic seconds

    async def run_short(self, call: Callable[[], T]) -> T:
        """Like ``run``, for a call about a few small files: at once, while the disk is quick."""
        begun_at = time.monotonic()
        if begun_at < self._avoid_until:
            return await self.run(call)
        try:
            return call()
        finally:
            ended_at = time.monotonic()
            if (took_s := ended_at - begun_at) > SHORT_S:
                self._avoid_until = ended_at + AVOID_FOR * took_s

    async def run(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns, or raise what it raises.

        If the caller is cancelled, the call goes on alone, or does not begin.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._set_out)
        outcome: asyncio.Future[T] = loop.create_future()
        self._waiting.append((outcome, call))
        return await outcome

    def close(self) -> None:
        """Take no more calls. Those under way go on."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _set_out(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), MOST_AT_ONCE):
            self._threads.submit(_travel, waiting[start : start + MOST_AT_ONCE])


def _travel(calls: list[_Call]) -> None:
    """Make the calls, in a thread; hand all outcomes over together."""
    outcomes: list[_Outcome] = []
    for future, call in calls:
        if future.cancelled():
            continue
        try:
            outcomes.append((future, call(), None))
        except Exception as error:  # noqa: BLE001 - the caller gets it, whatever it is
            outcomes.append((future, None, error))
    if outcomes:
        outcomes[0][0].get_loop().call_soon_threadsafe(_deliver, outcomes)


def _deliver(outcomes: list[_Outcome]) -> None:
    for future, result, error in outcomes:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
