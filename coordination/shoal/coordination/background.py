"""Loops that run in the background and never end without a log line."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from shoal.coordination.errors import CoordinationError
from shoal.runtime.limits import memory_shortage

log = structlog.get_logger()

RESTART_S = 1.0  # so that a loop that fails at once fills no log


def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Run ``work`` as a task; a failure is logged at once, not only when it is awaited."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_report)
    return task


def keep_running(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> asyncio.Task[None]:
    """Run ``work()`` as a task; log a failure, and run it again after ``RESTART_S``.

    For loops that read everything when they begin. For what must not go on after an error
    there is ``start``. An error that ``is_final`` ends the task: no repetition helps.
    """
    task = asyncio.create_task(_again_and_again(work, name), name=name)
    # Its error is in the log: that nothing awaits the task is not worth another line.
    task.add_done_callback(lambda over: over.cancelled() or over.exception())
    return task


async def _again_and_again(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    while True:
        try:
            await work()
        except (Exception, asyncio.CancelledError) as error:
            # To await a task that another one has cancelled is a failure, too.
            if is_cancelled():
                raise
            memory_shortage.report(error)
            if isinstance(error, CoordinationError) and error.is_final:
                log.error("background loop ended", loop=name, error=str(error))
                raise
            log.exception("background loop failed; it begins again", loop=name)
            await asyncio.sleep(RESTART_S)
        else:
            return


def is_cancelled() -> bool:
    """Whether the current task is being cancelled.

    False for a ``CancelledError`` of something that it awaits, such as another task.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Return when ``task`` has ended or was stopped. Raises what has ended it."""
    if task:
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


async def stop(task: asyncio.Task[Any] | None) -> None:
    """Cancel ``task`` and return when it has ended."""
    if task:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _report(task: asyncio.Task[None]) -> None:
    if task.cancelled():
        if not task.cancelling():  # it has awaited a task that another one has cancelled
            log.critical("background loop died", loop=task.get_name(), reason="cancelled within")
    elif error := task.exception():
        memory_shortage.report(error)
        log.critical("background loop died", loop=task.get_name(), exc_info=error)
