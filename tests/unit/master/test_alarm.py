"""What wakes a master's loops."""

import asyncio

import pytest

from shoal.master.alarm import Alarm, wait_for

NEVER_S = 1e6


async def test_first_look_is_the_regular_one_and_comes_at_once() -> None:
    alarm = Alarm(NEVER_S)
    assert await alarm.wait() is True


async def test_bell_wakes_between_regular_looks_also_if_it_rang_before() -> None:
    alarm = Alarm(NEVER_S)
    await alarm.wait()
    alarm.ring()
    alarm.ring()
    assert await alarm.wait() is False
    waiting = asyncio.create_task(alarm.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    alarm.ring()
    assert await waiting is False


async def test_bells_do_not_put_off_the_regular_look() -> None:
    alarm = Alarm(0.01)
    await alarm.wait()
    looks: list[bool] = []
    while not any(looks):
        alarm.ring()
        looks.append(await alarm.wait())
        await asyncio.sleep(0.001)


async def test_cancellation_that_meets_the_event_is_not_swallowed() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_for(event, NEVER_S))
    await asyncio.sleep(0)
    event.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
