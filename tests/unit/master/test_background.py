"""Tasks beside a master's loops."""

import asyncio

from structlog.testing import capture_logs

from shoal.master.loops import Background


async def fail() -> None:
    raise ValueError("junk")


async def test_error_is_logged_and_ends_nothing_else() -> None:
    with capture_logs() as logged:
        async with Background() as background:
            other = background.spawn(asyncio.sleep(0.001), "other")
            await asyncio.gather(background.spawn(fail(), "failing"), return_exceptions=True)
            await other
    assert [(one["event"], one["task"]) for one in logged] == [
        ("background task failed", "failing")
    ]


async def test_end_of_the_block_cancels_what_is_left() -> None:
    async with Background() as background:
        left = background.spawn(asyncio.sleep(1e6), "left")
    assert left.cancelled()
