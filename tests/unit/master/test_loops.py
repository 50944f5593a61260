"""When a loop of a master has its next turn, and what runs beside loops."""

import asyncio

import pytest
from structlog.testing import capture_logs

from shoal.master.loops import Background, Wakeup, wait_for

NEVER_S = 1e6


async def test_first_poll_is_the_regular_one_and_comes_at_once() -> None:
    wakeup = Wakeup(NEVER_S)
    assert await wakeup.wait() is True


async def test_notification_wakes_between_regular_polls_also_if_it_came_before() -> None:
    wakeup = Wakeup(NEVER_S)
    await wakeup.wait()
    wakeup.notify()
    wakeup.notify()
    assert await wakeup.wait() is False
    waiting = asyncio.create_task(wakeup.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    wakeup.notify()
    assert await waiting is False


async def test_notifications_do_not_put_off_the_regular_poll() -> None:
    wakeup = Wakeup(0.01)
    await wakeup.wait()
    polls: list[bool] = []
    while not any(polls):
        wakeup.notify()
        polls.append(await wakeup.wait())
        await asyncio.sleep(0.001)


async def test_cancellation_that_meets_the_event_is_not_swallowed() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_for(event, NEVER_S))
    await asyncio.sleep(0)
    event.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_regular_poll_can_be_put_off_and_brought_forward() -> None:
    wakeup = Wakeup(NEVER_S, first_s=NEVER_S)
    wakeup.notify()
    assert await wakeup.wait() is False
    wakeup.due_in(0.001)
    assert await wakeup.wait() is True


async def fail() -> None:
    raise ValueError("junk")


async def test_error_of_a_background_task_is_logged_and_ends_nothing_else() -> None:
    with capture_logs() as logged:
        async with Background() as background:
            other = background.spawn(asyncio.sleep(0.001), "other")
            await asyncio.gather(background.spawn(fail(), "failing"), return_exceptions=True)
            await other
    assert [(one["event"], one["task"]) for one in logged] == [
        ("background task failed", "failing")
    ]


async def test_end_of_the_block_cancels_background_tasks() -> None:
    async with Background() as background:
        left = background.spawn(asyncio.sleep(1e6), "left")
    assert left.cancelled()
