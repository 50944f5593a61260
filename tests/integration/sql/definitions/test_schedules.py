"""Schedules: kept in step with the published version, fired once."""

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import text

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.model import Missed
from shoal.core.runs.records import StoredSchedule
from shoal.sql import Database
from shoal.sql.errors import PartitionsMissing, StaleRow, UnreadableRow
from tests.integration.sql.given import LATER, NOW, PARTITIONS, definition, published

ALL = range(PARTITIONS)
SIX = {"cron": "0 6 * * *"}
SEVEN = {"cron": "0 7 * * *", "timezone": "Asia/Tokyo", "parameters": {"region": "jp"}}


async def _publish(
    database: Database, *schedules: object, at: datetime = NOW
) -> list[StoredSchedule]:
    async with database.unit_of_work() as uow:
        await uow.workflows.publish(definition(schedules=schedules, timezone="Europe/Berlin"), at)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.schedules.of_workflow("demo", "flow")


async def _calendar(database: Database, *days: str, project: str = "demo") -> None:
    async with database.unit_of_work() as uow:
        wanted = [date.fromisoformat(day) for day in days]
        await uow.calendars.put(project, "closed", wanted, "", NOW)
        await uow.commit()


async def test_schedule_has_a_concrete_zone_and_a_first_fire_time(database: Database) -> None:
    six, seven = await _publish(database, SIX, SEVEN)
    assert (six.timezone, six.parameters, six.enabled) == ("Europe/Berlin", {}, True)
    assert six.next_fire_at == datetime(2026, 3, 2, 5, tzinfo=UTC)
    assert (seven.timezone, seven.parameters) == ("Asia/Tokyo", {"region": "jp"})
    assert seven.next_fire_at == datetime(2026, 3, 1, 22, tzinfo=UTC)
    assert (six.project, six.workflow) == ("demo", "flow")
    assert six.partition == seven.partition in ALL


async def test_schedule_whose_times_stay_keeps_its_row_and_its_fire_time(
    database: Database,
) -> None:
    six, seven = await _publish(database, SIX, SEVEN)
    changes = {"parameters": {"new": "1"}, "missed": "all", "missed_window": 60, "priority": "LOW"}
    six_now, seven_now = await _publish(
        database, SEVEN, {**SIX, **changes}, at=NOW + timedelta(days=3)
    )
    assert seven_now == seven
    assert six_now == replace(
        six, parameters={"new": "1"}, missed=Missed.ALL, missed_window=60, priority=3
    )


async def test_order_of_schedules_that_differ_in_little_does_not_matter(
    database: Database,
) -> None:
    north, south = ({**SIX, "parameters": {"region": name}} for name in ("north", "south"))
    before = await _publish(database, north, south)
    assert await _publish(database, south, north, at=LATER) == before
    (left,) = await _publish(database, south, at=LATER)
    assert left == before[1]


@pytest.mark.parametrize(
    "change",
    [
        {"cron": "0 8 * * *"},
        {"timezone": "Asia/Tokyo"},
        {"start": "2026-03-02T09:00"},
        {"end": "2027-01-01"},
        {"exclude": ["2026-03-03"]},
        {"on_gap": "skip"},
        {"on_overlap": "both"},
    ],
)
async def test_schedule_whose_times_change_counts_anew_in_its_row(
    database: Database, change: dict[str, object]
) -> None:
    (six,) = await _publish(database, SIX)
    (changed,) = await _publish(database, {**SIX, **change}, at=NOW + timedelta(days=1))
    assert changed.id == six.id
    assert changed.next_fire_at is not None
    assert changed.next_fire_at > NOW + timedelta(days=1)
    assert await _publish(database, {**SIX, **change}, at=LATER) == [changed]


async def test_fire_that_is_due_while_its_schedule_changes_is_not_lost(
    database: Database,
) -> None:
    (six,) = await _publish(database, SIX)
    due_at = six.next_fire_at
    assert due_at is not None
    eight = {"cron": "0 8 * * *"}
    (same,) = await _publish(database, eight, at=due_at + timedelta(seconds=1))
    assert same.next_fire_at == due_at
    (missed,) = await _publish(database, SIX, at=due_at + timedelta(seconds=61))
    assert missed.next_fire_at == due_at + timedelta(days=1)


async def test_times_of_a_schedule_are_stored_as_the_master_needs_them(
    database: Database,
) -> None:
    await _calendar(database, "2026-03-04")
    (one,) = await _publish(
        database,
        {
            **SIX,
            "timezone": "Asia/Tokyo",
            "start": "2026-03-02T06:30",
            "end": "2026-04-01T00:00:00Z",
            "exclude": ["2026-03-03", "2026-03-02", "2026-03-03"],
            "calendar": "closed",
            "on_gap": "skip",
            "on_overlap": "last",
            "missed": "skip",
            "missed_window": "2h",
            "priority": "HIGHEST",
        },
    )
    assert one.starts_at == datetime(2026, 3, 1, 21, 30, tzinfo=UTC)
    assert one.ends_at == datetime(2026, 4, 1, tzinfo=UTC)
    assert one.exclude == (date(2026, 3, 2), date(2026, 3, 3))
    assert (one.calendar, one.on_gap, one.on_overlap) == ("closed", "skip", "last")
    assert (one.missed, one.missed_window, one.priority) == (Missed.SKIP, 7200, 0)
    assert one.next_fire_at == datetime(2026, 3, 4, 21, tzinfo=UTC)  # the fifth in Tokyo


async def test_calendar_that_the_project_does_not_have_is_refused(database: Database) -> None:
    await _calendar(database, "2026-03-04", project="other")
    with pytest.raises(InvalidDefinition) as caught:
        await _publish(database, SIX, {**SIX, "calendar": "closed"})
    (problem,) = caught.value.problems
    assert problem.field == "schedules[1].calendar"
    assert "shoal calendar set demo/closed" in problem.message


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
        try:
            async with database.unit_of_work() as uow:
                await uow.schedules.advance_many([(six.id, fired, following)])
                await uow.commit()
        except StaleRow:
            return False
        return True

    assert sorted(await asyncio.gather(*(advance() for _ in range(5)))) == [False] * 4 + [True]
    async with database.unit_of_work() as uow:
        assert await uow.schedules.next_due(ALL) == following
        await uow.schedules.advance_many([(six.id, following, None)])
        assert await uow.schedules.next_due(ALL) is None

        with pytest.raises(StaleRow, match="schedule"):
            await uow.schedules.advance_many([(six.id, following, None)])


async def test_publishing_waits_for_a_master_that_fires(database: Database) -> None:
    (six,) = await _publish(database, SIX)
    assert six.next_fire_at is not None
    following = six.next_fire_at + timedelta(days=1)
    async with database.unit_of_work() as uow:
        assert await uow.schedules.hold([six.id, 4711]) == {six.id: six}
        publishing = asyncio.create_task(
            _publish(database, {"cron": "0 8 * * *"}, at=six.next_fire_at)
        )
        done, _ = await asyncio.wait([publishing], timeout=0.2)
        assert not done
        await uow.schedules.advance_many([(six.id, six.next_fire_at, following)])
        await uow.commit()
    (eight,) = await publishing
    assert eight.next_fire_at == six.next_fire_at + timedelta(hours=2)  # six is not fired again


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


@pytest.mark.parametrize("ready_url", ["sqlite"], indirect=True)  # PostgreSQL stores no such time
async def test_fire_time_that_cannot_be_read_is_due_and_stops_no_other(database: Database) -> None:
    """It would be the next time for ever, and no schedule would fire any longer."""
    bad, good = await _publish(database, SIX, SEVEN)
    async with database.unit_of_work() as uow:
        statement = text("UPDATE schedule SET next_fire_at = :at WHERE id = :id")
        await uow.connection.execute(statement, {"at": -(10**18), "id": bad.id})
        await uow.commit()
    assert good.next_fire_at is not None
    late = good.next_fire_at + timedelta(minutes=1)
    reported: list[UnreadableRow] = []
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.schedules.next_due(ALL)
        assert found is not None
        assert found < late
        due = await uow.schedules.due(ALL, late, 10, reported.append)
        assert await uow.schedules.next_due(ALL, after=late) is None
    assert [one.id for one in due] == [good.id]
    assert [one.key for one in reported] == [bad.id]
