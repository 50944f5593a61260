"""Tasks beside a master's loops whose results no caller waits for."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Self

import structlog

from shoal.master.error_backoff import trace_of

log = structlog.get_logger()


class Background:
    """Runs tasks for the life of an ``async with`` block, which cancels those that are left."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Start ``work``. An error that it raises is logged, and ends nothing else."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background task failed", task=task.get_name(), trace=trace_of(error))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
