"""Schedules: kept in step with the published version, fired once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from shoal.core.records import Schedule
from shoal.sql import Database
from shoal.sql.errors import PartitionsMissing
from tests.integration.sql.given import LATER, NOW, PARTITIONS, definition, published

ALL = range(PARTITIONS)
SIX = {"cron": "0 6 * * *"}
SEVEN = {"cron": "0 7 * * *", "timezone": "Asia/Tokyo", "parameters": {"region": "jp"}}


async def _publish(database: Database, *schedules: object, at: datetime = NOW) -> list[Schedule]:
    async with database.unit_of_work() as uow:
        await uow.workflows.publish(definition(schedules=schedules, timezone="Europe/Berlin"), at)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.schedules.of_workflow("demo", "flow")


async def test_schedule_has_a_concrete_zone_and_a_first_fire_time(database: Database) -> None:
    six, seven = await _publish(database, SIX, SEVEN)
    assert (six.timezone, six.parameters, six.enabled) == ("Europe/Berlin", {}, True)
    assert six.next_fire_at == datetime(2026, 3, 2, 5, tzinfo=UTC)
    assert (seven.timezone, seven.parameters) == ("Asia/Tokyo", {"region": "jp"})
    assert seven.next_fire_at == datetime(2026, 3, 1, 22, tzinfo=UTC)
    assert (six.project, six.workflow) == ("demo", "flow")
    assert six.partition == seven.partition in ALL


async def test_unchanged_schedule_keeps_its_row_and_its_fire_time(database: Database) -> None:
    six, seven = await _publish(database, SIX, SEVEN)
    much_later = NOW + timedelta(days=3)
    eight, same_seven = await _publish(
        database, SEVEN, {**SIX, "parameters": {"new": "1"}}, at=much_later
    )
    assert (eight, same_seven.id > seven.id) == (seven, True)
    assert same_seven.next_fire_at == datetime(2026, 3, 5, 5, tzinfo=UTC)
    assert same_seven.id != six.id


async def test_equal_schedules_are_separate_rows(database: Database) -> None:
    first = await _publish(database, SIX, SIX)
    assert len({one.id for one in first}) == 2
    assert await _publish(database, SIX) == first[:1]


async def test_schedule_that_was_off_does_not_make_up_for_missed_fires(database: Database) -> None:
    (off,) = await _publish(database, {**SIX, "enabled": False})
    assert (off.enabled, off.next_fire_at) == (False, None)
    (on,) = await _publish(database, SIX, at=NOW + timedelta(days=9))
    assert (on.id, on.next_fire_at) == (off.id, datetime(2026, 3, 11, 5, tzinfo=UTC))
    (off_again,) = await _publish(database, {**SIX, "enabled": False}, at=LATER)
    assert (off_again.id, off_again.next_fire_at) == (off.id, None)


async def test_due_is_what_should_have_fired_the_longest_overdue_first(database: Database) -> None:
    six, seven, _ = await _publish(database, SIX, SEVEN, {**SIX, "enabled": False})
    assert six.next_fire_at is not None
    assert seven.next_fire_at is not None
    async with database.unit_of_work(read_only=True) as uow:
        s = uow.schedules
        assert await s.due(ALL, six.next_fire_at, 10) == [seven, six]
        assert await s.due(ALL, six.next_fire_at, 1) == [seven]
        assert await s.due(ALL, seven.next_fire_at, 10) == [seven]
        assert await s.due(ALL, seven.next_fire_at - timedelta(microseconds=1), 10) == []
        elsewhere = set(ALL) - {six.partition}
        assert await s.due(elsewhere, six.next_fire_at, 10) == []
        assert await s.next_due(ALL) == seven.next_fire_at
        assert await s.next_due(elsewhere) is None


async def test_fire_time_is_taken_by_exactly_one(database: Database) -> None:
    (six,) = await _publish(database, SIX)
    assert six.next_fire_at is not None
    fired, following = six.next_fire_at, six.next_fire_at + timedelta(days=1)

    async def advance() -> bool:
        async with database.unit_of_work() as uow:
            taken = await uow.schedules.advance(six.id, fired, following)
            await uow.commit()
        return taken

    assert sorted(await asyncio.gather(*(advance() for _ in range(5)))) == [False] * 4 + [True]
    async with database.unit_of_work() as uow:
        assert await uow.schedules.next_due(ALL) == following
        assert await uow.schedules.advance(six.id, following, None)
        assert await uow.schedules.next_due(ALL) is None
        assert not await uow.schedules.advance(six.id, following, None)


async def test_schedules_are_listed_in_pages(database: Database) -> None:
    await published(database, definition("one", schedules=[SIX]))
    await published(database, definition("two", schedules=[SIX], project="other"))
    async with database.unit_of_work(read_only=True) as uow:
        first, second = await uow.schedules.list()
        assert [first.workflow, second.workflow] == ["one", "two"]
        assert await uow.schedules.list(after_id=first.id) == [second]
        assert await uow.schedules.list("demo") == [first]


async def test_nobody_would_fire_a_schedule_before_the_first_start(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()
        await published(database, definition("without"))
        with pytest.raises(PartitionsMissing, match="start a master"):
            await published(database, definition(schedules=[SIX]))
