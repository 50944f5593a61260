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


async def cancelled_within() -> None:
    other = asyncio.create_task(asyncio.sleep(60.0))
    other.cancel()
    await other


async def test_loop_that_awaits_what_another_has_cancelled_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "RESTART_S", 0.0)
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            await cancelled_within()

    await background.keep_running(work, "failing")
    assert begun == 3


async def test_work_that_is_cancelled_within_is_logged_and_stopped_work_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(
        background.log, "critical", lambda _, **values: logged.append(values["loop"])
    )
    await asyncio.wait([background.start(cancelled_within(), "dead")])
    await background.stop(background.start(asyncio.sleep(60.0), "stopped"))
    await asyncio.sleep(0)
    assert logged == ["dead"]
