"""Payloads: asked for together, and until there is a decision."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from shoal.coordination import QueueEntry, TaskClaim
from shoal.proto import shoal_pb2 as pb
from shoal.proto.errors import PeerUnavailable
from shoal.worker.attempts.held import HeldAttempt
from shoal.worker.attempts.lifecycle import AttemptEvent
from shoal.worker.intake import fetches
from shoal.worker.intake.fetches import CALLS_AT_ONCE, Fetcher
from shoal.worker.masters import Masters
from tests.support.waiting import eventually


class OneMaster:
    """Owns every partition and grants everything, while ``open``. Keeps the calls."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.open = asyncio.Event()
        self.alive = True

    async def addresses(self, partitions: Iterable[int]) -> dict[int, str]:
        return dict.fromkeys(partitions, "somewhere:1")

    def forget(self, _partitions: Iterable[int]) -> None:
        """There is no other."""

    async def fetch(self, address: str, request: pb.FetchRequest) -> pb.FetchResponse:
        numbers = [ref.task_instance_id for ref in request.attempts]
        self.calls.append(numbers)
        await self.open.wait()
        if not self.alive:
            raise PeerUnavailable(address, "it is dead")
        verdicts = [
            pb.FetchVerdict(task_instance_id=n, payload=pb.Payload(task_instance_id=n))
            for n in numbers
        ]
        return pb.FetchResponse(verdicts=verdicts)


def attempt(number: int) -> HeldAttempt:
    return HeldAttempt(
        TaskClaim(QueueEntry("default", 2, 7, 2, number, 0), "w", epoch=1, generation=1)
    )


@asynccontextmanager
async def fetcher_from(master: OneMaster, granted: list[int]) -> AsyncIterator[Fetcher]:
    """A fetcher at work; it is ended with all its calls."""

    def take(attempt: HeldAttempt, _payload: pb.Payload) -> None:
        granted.append(attempt.id)

    try:
        async with asyncio.TaskGroup() as tasks:
            yield Fetcher(tasks, cast("Masters", master), "w", take, lambda _attempt: None)
            raise StopAsyncIteration
    except* StopAsyncIteration:
        pass


async def test_what_is_claimed_during_calls_goes_with_the_next_one_together() -> None:
    master, granted = OneMaster(), list[int]()
    async with fetcher_from(master, granted) as fetcher:
        for number in range(8):
            fetcher.fetch([attempt(number)])
            await asyncio.sleep(0)
        await eventually(lambda: len(master.calls) == CALLS_AT_ONCE)
        master.open.set()
        await eventually(lambda: len(granted) == 8)
    assert [len(call) for call in master.calls] == [1] * CALLS_AT_ONCE + [8 - CALLS_AT_ONCE]
    assert [number for call in master.calls for number in call] == list(range(8))  # in their order


async def test_what_is_over_is_not_asked_for() -> None:
    master, granted = OneMaster(), list[int]()
    attempts = [attempt(number) for number in range(CALLS_AT_ONCE + 2)]
    async with fetcher_from(master, granted) as fetcher:
        for each in attempts:
            fetcher.fetch([each])
            await asyncio.sleep(0)
        await eventually(lambda: len(master.calls) == CALLS_AT_ONCE)
        attempts[-1].apply(AttemptEvent.END)
        master.open.set()
        await eventually(lambda: len(granted) == CALLS_AT_ONCE + 1)
    assert attempts[-1].id not in {number for call in master.calls for number in call}


async def test_payload_that_comes_when_the_attempt_is_over_is_not_taken() -> None:
    """Its claim was released meanwhile, or it was killed."""
    master, granted = OneMaster(), list[int]()
    first, second = attempt(0), attempt(1)
    async with fetcher_from(master, granted) as fetcher:
        fetcher.fetch([first, second])
        await eventually(lambda: master.calls)
        first.apply(AttemptEvent.END)
        master.open.set()
        await eventually(lambda: second.granted)
    assert granted == [1]
    assert not first.granted


async def test_nothing_is_granted_to_what_was_asked_for_before_a_cancel() -> None:
    """Neither upon the calls under way, nor upon those that waited for them."""
    master, granted = OneMaster(), list[int]()
    async with fetcher_from(master, granted) as fetcher:
        for number in range(CALLS_AT_ONCE + 2):
            fetcher.fetch([attempt(number)])
            await asyncio.sleep(0)
        await eventually(lambda: len(master.calls) == CALLS_AT_ONCE)
        fetcher.cancel()
        master.open.set()
        fetcher.fetch([attempt(100)])
        await eventually(lambda: granted)
    assert granted == [100]
    assert master.calls[CALLS_AT_ONCE:] == [[100]]


async def test_what_waits_for_a_dead_master_asks_its_successor_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetches, "delay_s", lambda _tries: 0.0)
    master, granted = OneMaster(), list[int]()
    async with fetcher_from(master, granted) as fetcher:
        for number in range(CALLS_AT_ONCE + 3):
            fetcher.fetch([attempt(number)])
            await asyncio.sleep(0)
        await eventually(lambda: len(master.calls) == CALLS_AT_ONCE)
        master.alive = False
        master.open.set()
        await eventually(lambda: len(master.calls) > 2 * CALLS_AT_ONCE)
        master.alive = True
        await eventually(lambda: len(granted) == CALLS_AT_ONCE + 3)
    waited = list(range(CALLS_AT_ONCE, CALLS_AT_ONCE + 3))
    assert master.calls[CALLS_AT_ONCE] == [0, *waited]  # none was sent after its predecessors
    assert sorted(granted) == list(range(CALLS_AT_ONCE + 3))
