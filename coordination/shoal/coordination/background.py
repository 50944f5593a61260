"""Loops that run beside their owner and never end in silence."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Run ``work`` as a task; if it fails, say so at once and not only when it is awaited."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_report)
    return task


async def stop(task: asyncio.Task[Any] | None) -> None:
    """Cancel ``task`` and return when it has ended."""
    if task:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.critical("background loop died", loop=task.get_name(), exc_info=error)
