"""Loops that run beside their owner."""

import asyncio

import pytest

from shoal.coordination import background


async def test_loop_that_fails_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RESTART_S", 0.0)
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise KeyError(begun)

    await background.keep_running(work, "failing")
    assert begun == 3


async def test_loop_that_is_stopped_ends() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = background.keep_running(work, "lasting")
    await begun.wait()
    await background.stop(task)
    assert task.cancelled()
