"""One quarantine for all consumers, and how the bad item among good ones is found."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem, failure_of
from shoal.sql import Database
from shoal.sql.errors import DatabaseUnavailable, InvalidValue, JobTaken
from shoal.sql.isolation import isolate
from shoal.sql.repositories.upkeep import quarantine

NOW = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVENT = QuarantinedItem(
    ItemKind.EVENT,
    "1",
    None,
    "why",
    1,
    NOW,
    ItemConsumer.ALERTS,
    "p",
    "daily",
    NOW,
    is_skipped=True,
)


async def test_item_is_stored_once_and_counted(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.quarantine.note(EVENT)
        again = replace(EVENT, reason="now\0", since=NOW + HOUR, last_at=NOW + HOUR)
        await uow.quarantine.note(again)
        [found] = await uow.quarantine.list()
    assert (found.tries, found.reason) == (2, "now\ufffd")
    assert (found.since, found.last_at) == (NOW, NOW + HOUR)


async def test_consumers_do_not_touch_the_items_of_others(database: Database) -> None:
    run = QuarantinedItem(ItemKind.INSTANCE, "1", 3, "why", 1, NOW, last_at=NOW)
    twin = replace(run, consumer=ItemConsumer.ALERTS, partition=None)
    async with database.unit_of_work() as uow:
        await uow.quarantine.put([run])
        await uow.quarantine.note(twin)
        assert (await uow.quarantine.of(ItemKind.INSTANCE, 1)) == run
        assert await uow.quarantine.count() == 1
        assert await uow.quarantine.counts() == {("masters", False): 1, ("alerts", False): 1}
        await uow.quarantine.clear([3])
        assert [one.consumer for one in await uow.quarantine.list()] == [ItemConsumer.ALERTS]
        await uow.quarantine.remove([(ItemKind.INSTANCE, "1")], ItemConsumer.ALERTS)
        assert await uow.quarantine.list() == []


async def test_skipped_items_go_by_age_and_number(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "MOST_SKIPPED", 3)
    held = replace(EVENT, kind=ItemKind.WORKFLOW, item="p/daily", is_skipped=False)
    async with database.unit_of_work() as uow:
        await uow.quarantine.note(held)
        for number in range(6):
            at = NOW + number * HOUR
            await uow.quarantine.note(replace(EVENT, item=str(number), since=at, last_at=at))
        await uow.quarantine.prune(ItemConsumer.ALERTS, NOW + HOUR)
        found = await uow.quarantine.list()
        assert [one.item for one in found] == ["5", "4", "3", "p/daily"]
        await uow.quarantine.prune(ItemConsumer.ALERTS, None)
        assert len(await uow.quarantine.list()) == 4


def test_reasons_are_short_and_name_the_place() -> None:
    with pytest.raises(ValueError) as failed:
        int("9" * 5_000)
    assert "(test_quarantine.py:" in failure_of(failed.value)
    long = ValueError("x" * 10_000 + "\ud800")
    assert len(failure_of(long)) == 500
    failure_of(ValueError("\0\ud800")).encode()
    assert failure_of(InvalidValue("too long")) == "too long"


@given(st.lists(st.booleans(), max_size=40))
async def test_each_good_item_is_dealt_with_once_and_each_bad_one_skipped(good: list[bool]) -> None:
    done: list[int] = []
    skipped: list[int] = []
    order: list[int] = []

    async def deal(items: Sequence[int]) -> None:
        if bad := [one for one in items if not good[one]]:
            raise ValueError(f"{bad[0]} is bad")
        done.extend(items)
        order.extend(items)

    async def skip(item: int, error: Exception) -> None:
        assert str(error) == f"{item} is bad"
        skipped.append(item)
        order.append(item)

    await isolate(range(len(good)), deal, skip)
    assert done == [one for one in range(len(good)) if good[one]]
    assert skipped == [one for one in range(len(good)) if not good[one]]
    assert order == list(range(len(good)))


@pytest.mark.parametrize(
    "error", [DatabaseUnavailable("away"), JobTaken("rules", 1), MemoryError()]
)
async def test_outages_are_raised_and_skip_nothing(error: Exception) -> None:
    async def deal(items: Sequence[int]) -> None:
        raise error

    async def skip(item: int, error: Exception) -> None:
        raise AssertionError("an outage is of no item")

    with pytest.raises(type(error)):
        await isolate([1, 2], deal, skip)
