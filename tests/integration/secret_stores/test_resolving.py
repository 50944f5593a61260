"""How masters read references: together, within a moment, and leaving alone what fails."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from shoal.runtime.secret_stores.errors import (
    InvalidReference,
    SecretRefused,
    SecretStoreError,
    StoreGivenUp,
    StoreUnavailable,
)
from shoal.runtime.secret_stores.resolver import DOWN_S, WAIT_S, Resolver
from shoal.runtime.secret_stores.store import SecretStore, StoreSettings
from shoal.runtime.secret_stores.stores import AT_ONCE, SecretStores
from tests.support.waiting import DEADLINE_S, eventually

CACHE_S, PATIENCE_S = 10.0, 60.0


class Scripted(SecretStore[StoreSettings]):
    """Does what a test says; counts what is asked."""

    def __init__(self, **table: Any) -> None:
        super().__init__("s", StoreSettings.model_validate({"kind": "scripted", **table}))
        self.does: Callable[[str], str] = lambda path: f"value of {path}"
        self.asked: Counter[str] = Counter()
        self.gate = threading.Event()

    def read(self, path: str, field: str | None) -> str:
        """Do it."""
        self.asked[path] += 1
        return self.does(path)

    def hangs(self, path: str) -> str:
        """Come back when the gate is open."""
        self.gate.wait(DEADLINE_S)
        return f"value of {path}"


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def resolving(
    store: Scripted, clock: Clock | None = None
) -> AsyncIterator[Callable[..., Any]]:
    resolver = Resolver(SecretStores({"s": store}), clock or Clock())

    async def value(path: str = "p/x", asker: int = 1) -> str:
        return await resolver.value("p", f"s:{path}", asker)

    try:
        yield value
    finally:
        store.gate.set()
        await resolver.aclose()


def down(path: str) -> str:
    raise StoreUnavailable("it is down")


async def test_one_look_serves_all_who_ask_and_for_some_seconds() -> None:
    store, clock = Scripted(cache_s=CACHE_S), Clock()
    async with resolving(store, clock) as value:
        assert set(await asyncio.gather(*(value() for _ in range(50)))) == {"value of p/x"}
        clock.now += CACHE_S - 1
        await value()
        assert store.asked["p/x"] == 1
        clock.now += 2
        store.does = lambda _: "a newer value"
        assert await value() == "a newer value"


async def test_nobody_waits_for_a_store_that_hangs() -> None:
    store, loop = Scripted(timeout_s=60), asyncio.get_running_loop()
    store.does = store.hangs
    async with resolving(store) as value:
        with pytest.raises(StoreUnavailable, match="has not answered yet"):
            await value()
        # The clock of the resolver stands still, so no look is slow to it: 40 others wait at once.
        began = loop.time()
        found = await asyncio.gather(*(value(f"p/{n}") for n in range(40)), return_exceptions=True)
        assert {type(one) for one in found} == {StoreUnavailable}
        assert loop.time() - began < DEADLINE_S / 4
        assert sum(store.asked.values()) <= AT_ONCE
        store.gate.set()
        await eventually(lambda: store.asked["p/39"] == 1)
        for n in range(40):
            await eventually_value(value, f"p/{n}")


async def eventually_value(value: Callable[..., Any], path: str) -> None:
    """Ask again as workers do, until there is a value."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(StoreUnavailable):
                assert await value(path) == f"value of {path}"
                return
            await asyncio.sleep(0.01)


async def test_many_attempts_one_after_the_other_wait_once_for_a_store_that_hangs() -> None:
    """As in a call of a worker, which is about up to 64 of them."""
    store, loop = Scripted(timeout_s=60), asyncio.get_running_loop()
    store.does = store.hangs
    resolver = Resolver(SecretStores({"s": store}))
    began = loop.time()
    try:
        for n in range(64):
            with pytest.raises(StoreUnavailable):
                await resolver.value("p", f"s:p/{n}", n)
        assert loop.time() - began < 64 * WAIT_S / 2
    finally:
        store.gate.set()
        await resolver.aclose()


async def test_store_that_fails_is_left_alone_and_asked_by_one_look_at_a_time() -> None:
    store, clock = Scripted(), Clock()
    store.does = down
    async with resolving(store, clock) as value:
        for n in range(200):
            with pytest.raises(StoreUnavailable, match="it is down"):
                await value(f"p/{n}")
        assert sum(store.asked.values()) == 3
        for second in range(1, 6):
            clock.now += DOWN_S * 1.1
            for n in range(20):
                with pytest.raises(StoreUnavailable, match="it is down"):
                    await value(f"p/{n}")
            assert sum(store.asked.values()) == 3 + second
        store.does = lambda path: f"value of {path}"
        clock.now += DOWN_S * 1.1
        assert await value("p/0") == "value of p/0"
        assert await value("p/1") == "value of p/1", "it is not left alone any more"


async def test_store_that_asks_for_a_pause_gets_it() -> None:
    store, clock = Scripted(), Clock()

    def limited(path: str) -> str:
        raise StoreUnavailable("too many requests", pause_s=20)

    store.does = limited
    async with resolving(store, clock) as value:
        with pytest.raises(StoreUnavailable, match="too many"):
            await value()
        store.does = lambda _: "a value"
        clock.now += 19
        with pytest.raises(StoreUnavailable, match="too many"):
            await value("p/y")
        clock.now += 2
        assert await value("p/y") == "a value"


async def test_attempt_waits_as_long_as_the_settings_say_and_then_fails() -> None:
    store, clock = Scripted(patience_s=PATIENCE_S), Clock()
    store.does = down
    async with resolving(store, clock) as value:
        for _ in range(12):
            with pytest.raises(StoreUnavailable) as raised:
                await value()
            assert raised.value.retriable
            clock.now += PATIENCE_S / 12
        with pytest.raises(StoreGivenUp, match=r"could not be read for 60 s: it is down"):
            await value()
        with pytest.raises(StoreUnavailable) as raised:
            await value(asker=2)
        assert raised.value.retriable, "another attempt has its own patience"


async def test_patience_begins_anew_after_an_answer() -> None:
    store, clock = Scripted(patience_s=PATIENCE_S, cache_s=1), Clock()
    async with resolving(store, clock) as value:
        for _ in range(5):
            store.does = down
            with pytest.raises(StoreUnavailable) as raised:
                await value()
            assert raised.value.retriable
            clock.now += PATIENCE_S / 2
            store.does = lambda _: "a value"
            assert await value() == "a value"
            clock.now += 2


async def test_refusal_is_the_last_word_and_no_failure_of_the_store() -> None:
    store, clock = Scripted(), Clock()

    def refuses(path: str) -> str:
        raise SecretRefused("there is no such path")

    store.does = refuses
    async with resolving(store, clock) as value:
        for _ in range(10):
            with pytest.raises(SecretRefused):
                await value()
        assert store.asked["p/x"] == 1, "the same is not asked at once again"
        for n in range(10):
            with pytest.raises(SecretRefused):
                await value(f"p/{n}")
        clock.now += DOWN_S + 0.1
        store.does = lambda _: "made since"
        assert await value() == "made since"
        with pytest.raises(InvalidReference):
            await value("q/x")
        assert store.asked["q/x"] == 0


@pytest.mark.parametrize(
    "error", [ValueError("hush"), SystemExit("hush"), StopIteration("hush"), OSError("hush")]
)
async def test_plugin_that_breaks_fails_its_secrets_alone(error: BaseException) -> None:
    store = Scripted(timeout_s=1)

    def breaks(path: str) -> str:
        raise error

    store.does = breaks
    with pytest.raises(StoreUnavailable, match=r"cannot be read|not answered") as raised:
        await SecretStores({"s": store}).read("p", "s:p/x")
    assert "hush" not in str(raised.value)


async def test_plugin_that_never_comes_back_keeps_no_more_than_its_own_threads() -> None:
    store = Scripted(timeout_s=0.1)
    store.does = store.hangs
    stores = SecretStores({"s": store})
    found = await asyncio.gather(
        *(stores.read("p", f"s:p/{n}") for n in range(20)), return_exceptions=True
    )
    assert {type(one) for one in found} == {StoreUnavailable}
    assert sum(store.asked.values()) == AT_ONCE
    store.gate.set()
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(SecretStoreError):
                assert await stores.read("p", "s:p/x") == "value of p/x"
                return
