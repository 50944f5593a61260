"""Actions of stored decisions on their way out, while the engine decides what comes next."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Sequence

import structlog

from shoal.core.errors import ShoalError
from shoal.core.runs.run import Action, Run

Performed = Sequence[tuple[Run, tuple[Action, ...]]]
Perform = Callable[[Performed], Awaitable[None]]

log = structlog.get_logger()

MOST_ACTIONS = 2_000  # performed by one call, unless they are of a single run


class ActionQueue:
    """Has actions performed in the order in which their decisions were stored.

    One call at a time: actions that come meanwhile go out together, in the next one. Those of a
    partition that was dropped are left out: its next owner derives them from what is stored.
    """

    def __init__(
        self,
        perform: Perform,
        partitions: Container[int],
        on_failure: Callable[[Run, Exception], None] = lambda run, error: None,
        on_success: Callable[[Run], None] = lambda run: None,
    ) -> None:
        """``partitions``: those held, at any time.

        ``on_failure``, ``on_success``: of runs whose actions cannot, or can, be performed.
        """
        self._perform = perform
        self._on_failure, self._on_success = on_failure, on_success
        self._partitions = partitions
        self._waiting: list[tuple[Run, tuple[Action, ...]]] = []
        self._news = asyncio.Event()

    def add(self, run: Run, actions: tuple[Action, ...], *, on_trial: bool = False) -> None:
        """Have actions performed soon, after all that were added before.

        ``on_trial``: ``on_success`` is called even if there is nothing to perform.
        """
        if actions or on_trial:
            self._waiting.append((run, actions))
            self._news.set()

    async def run(self) -> None:
        """Run for ever."""
        while True:
            await self._news.wait()
            if ours := [one for one in self._next() if one[0].partition in self._partitions]:
                await self._perform_all(ours)

    def _next(self) -> Performed:
        """Take what waits: so many actions at most, unless one run has more."""
        actions, count = 0, 0
        for _, some in self._waiting:
            actions += len(some)
            if count and actions > MOST_ACTIONS:
                break
            count += 1
        waiting, self._waiting = self._waiting[:count], self._waiting[count:]
        if not self._waiting:
            self._news.clear()
        return waiting

    async def _perform_all(self, performed: Performed) -> None:
        """Perform together; after a failure, run by run. Repeated actions do no harm."""
        try:
            await self._perform(performed)
        except Exception as error:  # noqa: BLE001 - one bad run must not stop all others
            failure = error
        else:
            self._succeeded(performed)
            return
        if isinstance(failure, ShoalError) and failure.retriable:
            log.warning("actions not performed; sweeps repeat them", error=str(failure))
            self._succeeded(performed)  # as far as the runs are concerned
            return
        if len(performed) == 1:
            self._on_failure(performed[0][0], failure)
            return
        for one in performed:
            await self._perform_all([one])

    def _succeeded(self, performed: Performed) -> None:
        for run, _ in performed:
            self._on_success(run)
