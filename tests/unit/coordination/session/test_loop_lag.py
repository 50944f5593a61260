"""What an event loop was late by, and its longest step in processor time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from shoal.coordination.session.loop_lag import (
    BUSY_INTERVAL_S,
    IDLE_INTERVAL_S,
    Longest,
    LoopLag,
)
from tests.support.waiting import DEADLINE_S


@asynccontextmanager
async def measured(on_change: Callable[[], None] = lambda: None) -> AsyncIterator[LoopLag]:
    lag = LoopLag()
    measuring = asyncio.create_task(lag.run(on_change))
    await asyncio.sleep(0.01)
    yield lag
    measuring.cancel()


def _work(length_s: float) -> None:
    """Use processor time."""
    until_s = time.thread_time() + length_s
    while time.thread_time() < until_s:
        pass


def _stand_still(length_s: float) -> None:
    time.sleep(length_s)


async def test_a_step_that_holds_the_loop_is_measured() -> None:
    async with measured() as lag:
        _work(0.8)
        await asyncio.sleep(2 * IDLE_INTERVAL_S)
        assert 0.8 - IDLE_INTERVAL_S <= lag.steps.recent_s < 0.8 + IDLE_INTERVAL_S
        assert lag.steps.ever_s == lag.steps.recent_s


async def test_a_step_of_a_busy_loop_is_measured_more_exactly() -> None:
    for _ in range(5):  # on a busy machine this loop may have no time to be busy
        async with measured() as lag:
            for _ in range(400):
                _work(0.002)
                await asyncio.sleep(0.001)
            _work(0.1)
            await asyncio.sleep(2 * IDLE_INTERVAL_S)
        if lag.steps.recent_s >= 0.1 - BUSY_INTERVAL_S:
            return
    pytest.fail(f"a step of 0.1 s was measured as {lag.steps.recent_s:.3f} s")


async def test_a_process_that_stood_still_was_late_without_a_step() -> None:
    async with measured() as lag:
        _stand_still(1.6)
        await asyncio.sleep(2 * IDLE_INTERVAL_S)
        assert lag.published["loop_lag_s"] >= 0.5
        assert lag.steps.ever_s < 0.1
        assert "longest_step_s" not in lag.published


async def test_a_noticeable_step_is_published_as_its_level() -> None:
    changed = asyncio.Event()
    async with measured(changed.set) as lag:
        lag.steps.note(time.monotonic(), 0.3)
        await asyncio.wait_for(changed.wait(), DEADLINE_S)
        steps = {name: lag.published[name] for name in ("longest_step_s", "longest_step_ever_s")}
        assert steps == {"longest_step_s": 0.25, "longest_step_ever_s": 0.25}


def test_the_longest_is_forgotten_and_the_longest_ever_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    longest = Longest(60.0)
    for at_s, length_s, recent_s in ((0, 1, 1), (10, 5, 5), (20, 3, 5), (65, 2, 5), (71, 1, 3)):
        now_s = at_s
        longest.note(at_s, length_s)
        assert longest.recent_s == recent_s
    now_s = 200.0
    assert (longest.recent_s, longest.ever_s) == (0.0, 5)
