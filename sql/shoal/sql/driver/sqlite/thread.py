"""A thread for what would block the event loop: one call after the other, in order."""

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

_Call = tuple[Callable[[], Any], asyncio.Future[Any]]


class WorkerThread:
    """Carries out calls in a thread of its own, which starts with the first.

    A caller that is cancelled leaves its call behind: it is carried out nevertheless, and before
    all calls that come later. ``busy`` says whether any call is under way or waits.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._under_way = 0

    @property
    def busy(self) -> bool:
        """Whether a call has not returned yet."""
        return self._under_way > 0

    def call(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Have ``function`` called; return its outcome to be awaited. Never blocks."""
        if self._thread is None:
            self._thread = Thread(target=self._carry, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        self._under_way += 1
        self._calls.put((function, outcome))
        return outcome

    def stop(self) -> None:
        """End the thread once it has carried out what it was given."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread = None

    def _carry(self) -> None:
        while (call := self._calls.get()) is not None:
            function, outcome = call
            error, result = None, None
            try:
                result = function()
            except BaseException as raised:  # noqa: BLE001 - it belongs to the caller
                error = raised
            loop = outcome.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._deliver, outcome, result, error)
            del call, function, outcome, result, error  # nothing is kept alive by waiting

    def _deliver(self, outcome: asyncio.Future[T], result: T, error: BaseException | None) -> None:
        self._under_way -= 1
        if outcome.cancelled():
            return
        if error is None:
            outcome.set_result(result)
        else:
            outcome.set_exception(error)
