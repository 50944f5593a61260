"""Turns of large requests: one of each caller, two of all, and 429 for those beyond."""

import asyncio

import pytest

from shoal.api.web import turns
from shoal.api.web.errors import TooManyRequests
from shoal.api.web.turns import MOST_AT_ONCE, MOST_WAITING, LargeRequests


class Site:
    """Requests that last until they are told to end."""

    def __init__(self) -> None:
        self.large = LargeRequests()
        self.working: list[str] = []
        self.most = 0
        self.may_end = asyncio.Event()

    async def request(self, caller: str) -> None:
        async with self.large.turn(caller):
            self.working.append(caller)
            self.most = max(self.most, len(self.working))
            await self.may_end.wait()
            self.working.remove(caller)

    def send(self, *callers: str) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.request(one)) for one in callers]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_caller_has_one_turn_and_leaves_the_other_to_others() -> None:
    site = Site()
    sent = site.send("a", "a", "a", "b")
    await settle()
    assert sorted(site.working) == ["a", "b"]
    site.may_end.set()
    await asyncio.gather(*sent)
    assert site.most == MOST_AT_ONCE
    assert not site.large._locks
    assert not site.large._there


async def test_the_next_of_a_caller_is_refused_at_once_and_not_that_of_others() -> None:
    site = Site()
    sent = site.send(*["a"] * (MOST_WAITING + 1))
    await settle()
    with pytest.raises(TooManyRequests, match="one after the other") as caught:
        await site.request("a")
    assert caught.value.headers["Retry-After"] == "2"
    sent += site.send("b")
    await settle()
    assert "b" in site.working
    site.may_end.set()
    await asyncio.gather(*sent)


async def test_who_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_S", 0.02)
    site = Site()
    sent = site.send("a", "b")
    await settle()
    with pytest.raises(TooManyRequests, match="try again later"):
        await site.request("c")
    site.may_end.set()
    await asyncio.gather(*sent)


async def test_requests_of_one_caller_wait_longer_for_each_other_than_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "WAIT_S", 0.02)
    site = Site()
    sent = site.send("a", "a")
    await asyncio.sleep(0.1)
    assert not any(one.done() for one in sent)
    monkeypatch.setattr(turns, "WAIT_FOR_OWN_S", 0.02)
    with pytest.raises(TooManyRequests, match="your other large requests have taken"):
        await site.request("a")
    site.may_end.set()
    await asyncio.gather(*sent)
