"""The loop that the services of a master share."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from shoal.core.errors import ShoalError
from shoal.master.errors import PartitionNotOwned
from shoal.master.services.service import PeriodicService
from shoal.sql.errors import Fenced, SchemaMissing
from tests.support.waiting import DEADLINE_S

NEVER_S = 1e6


class Polled(PeriodicService):
    """Raises what it was given, one by one, then nothing."""

    name = "polled"

    def __init__(self, errors: Sequence[Exception] = (), pause_s: float = 0.0) -> None:
        super().__init__(NEVER_S)
        self._errors = list(errors)
        self._pause_s = pause_s
        self.polls: list[bool] = []
        self._polled = asyncio.Event()

    def notify(self, partition: int) -> None:
        self._wakeup.notify()

    async def poll(self, is_regular: bool) -> None:
        self.polls.append(is_regular)
        self._polled.set()
        if self._errors:
            self._wakeup.notify()
            raise self._errors.pop(0)

    def pause_s(self, took_s: float) -> float:
        return self._pause_s

    async def polled(self, times: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.polls) < times:
                self._polled.clear()
                await self._polled.wait()


@asynccontextmanager
async def running(service: Polled) -> AsyncIterator[asyncio.Task[None]]:
    work = asyncio.create_task(service.run())
    try:
        yield work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_first_poll_is_regular_and_notifications_bring_others() -> None:
    service = Polled()
    async with running(service):
        await service.polled(1)
        service.notify(0)
        await service.polled(2)
    assert service.polls == [True, False]


@pytest.mark.parametrize(
    "error", [Fenced([1]), PartitionNotOwned(1), ValueError("junk"), OSError("away")]
)
async def test_error_that_another_poll_may_get_over_ends_nothing(error: Exception) -> None:
    service = Polled([error, error])
    async with running(service) as work:
        await service.polled(3)
        assert not work.done()


async def test_error_that_no_poll_gets_over_ends_the_service() -> None:
    service = Polled([SchemaMissing()])
    async with running(service) as work:
        with pytest.raises(ShoalError):
            await asyncio.wait_for(work, DEADLINE_S)


async def test_pause_after_a_poll_keeps_notifications_waiting() -> None:
    service = Polled(pause_s=NEVER_S)
    async with running(service):
        await service.polled(1)
        service.notify(0)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(service.polls) == 1
