"""Schedules fire once for each fire time, many at a time, whatever happens to the master."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, text, update
from structlog.testing import capture_logs

from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.commands import Command
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.records import StoredSchedule
from shoal.master.engine.engine import Engine
from shoal.master.services.schedules import Scheduler
from shoal.sql import Database
from shoal.sql.schema.tables import command, schedule
from tests.integration.master.contexts import context_of
from tests.support.database.databases import migrated, migrated_url

PARTITIONS = 8
SIX = datetime(2026, 3, 2, 6, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DAILY = {"cron": "0 0 6 * * ?"}
HOURLY = {"cron": "0 0 * * * ?"}


async def nothing(_: Sequence[Any]) -> None:
    """An engine without runs has nothing to perform."""


@dataclass
class Office:
    """A database with schedules, and masters that fire them at a time of our choice."""

    database: Database
    now: datetime = SIX - HOUR
    notified: list[int] = field(default_factory=list)

    async def master(
        self, epoch: int = 1, partitions: Collection[int] = range(PARTITIONS)
    ) -> Scheduler:
        """Return the scheduler of a master that has just taken over these partitions."""
        engine = Engine(self.database, nothing, lambda: self.now)
        await engine.take(dict.fromkeys(partitions, epoch), f"master {epoch}")
        return self.scheduler(engine, Scheduler)

    def scheduler(self, engine: Engine, kind: type[Scheduler]) -> Scheduler:
        return kind(
            context_of(
                self.database,
                engine,
                clock=lambda: self.now,
                partitions=PARTITIONS,
                notify_owners=self.notified.extend,
            )
        )

    async def publish(self, *schedules: dict[str, Any], name: str = "w") -> list[StoredSchedule]:
        task = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
        spec = WorkflowSpec.model_validate(
            {"project": "p", "name": name, "tasks": [task], "schedules": schedules}
        )
        async with self.database.unit_of_work() as uow:
            await uow.workflows.publish(spec, self.now)
            await uow.commit()
        return await self.schedules(name)

    async def schedules(self, name: str = "w") -> list[StoredSchedule]:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.schedules.of_workflow("p", name)

    async def close_on(self, *days: date) -> None:
        async with self.database.unit_of_work() as uow:
            await uow.calendars.put("p", "closed", days, "", self.now)
            await uow.commit()

    async def commands(self) -> list[Command]:
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.commands.starts(range(PARTITIONS), 10_000)

    async def fired(self) -> list[datetime | None]:
        return [one.logical_time for one in await self.commands()]


@pytest.fixture(params=["sqlite", "postgresql"])
async def office(request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    async with migrated(migrated_url(request, request.param), PARTITIONS) as database:
        yield Office(database)


def times(first: datetime, step: timedelta, count: int) -> list[datetime]:
    return [first + n * step for n in range(count)]


async def test_command_says_what_the_schedule_says(office: Office) -> None:
    special = {"timezone": "Asia/Tokyo", "priority": "HIGH", "parameters": {"n": "1"}}
    (one,) = await office.publish({"cron": "0 0 15 * * ?", **special})
    office.now = SIX
    await (await office.master()).fire_due()
    (start,) = await office.commands()
    assert start.idempotency_key == f"schedule:{one.id}:2026-03-02T06:00:00+00:00"
    assert (start.logical_time, start.timezone) == (SIX, "Asia/Tokyo")
    assert (start.schedule_id, start.priority, start.parameters) == (one.id, 1, {"n": "1"})
    assert office.notified == [start.partition]
    (one,) = await office.schedules()
    assert one.next_fire_at == SIX + DAY


async def test_next_look_is_when_the_next_schedule_is_due(office: Office) -> None:
    scheduler = await office.master()
    assert await scheduler.fire_due() == 60.0  # there are none
    await office.publish({"cron": "0 10/20 * * * ?"}, {"cron": "0/20 * * * * ?"})
    office.now = SIX + timedelta(seconds=5)
    assert await scheduler.fire_due() == 15.0  # by what it has just fired itself
    office.now = SIX + timedelta(seconds=15)
    assert await scheduler.fire_due() == 5.0
    assert set(await office.fired()) >= {SIX}


async def test_five_thousand_due_at_once_all_fire_though_half_change_their_master(
    office: Office,
) -> None:
    each = 100
    for number in range(50):
        schedules = [{**DAILY, "parameters": {"n": str(n)}} for n in range(each)]
        await office.publish(*schedules, name=f"w{number}")
    office.now = SIX + timedelta(seconds=1)
    successors: list[asyncio.Task[float]] = []

    class Overtaken(Scheduler):
        """Loses half of its partitions before its fourth transaction, without knowing."""

        transactions = 0

        async def _fire(self, *arguments: Any) -> Any:
            self.transactions += 1
            if self.transactions == 4:
                successor = await office.master(2, range(0, PARTITIONS, 2))
                successors.append(asyncio.create_task(successor.fire_due()))
            return await super()._fire(*arguments)

    first = await office.master()
    overtaken = office.scheduler(first._engine, Overtaken)
    assert await overtaken.fire_due() == 0.0  # there may be more
    assert await overtaken.fire_due() == 60.0
    await asyncio.gather(*successors)
    async with office.database.unit_of_work(read_only=True) as uow:
        c = command.c
        counted = select(func.count(), func.count(c.schedule_id.distinct())).where(
            c.logical_time == SIX
        )
        assert tuple((await uow.connection.rows(counted))[0]) == (5_000, 5_000)
        waiting = select(func.count()).where(schedule.c.next_fire_at == SIX + DAY)
        assert await uow.connection.scalar(waiting) == 5_000


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"missed": "skip"}, times(SIX + 4 * HOUR, HOUR, 1)),
        ({}, times(SIX + 3 * HOUR, HOUR, 2)),
        ({"missed": "all"}, times(SIX, HOUR, 5)),
        ({"missed": "all", "missed_window": "2h"}, times(SIX + 3 * HOUR, HOUR, 2)),
    ],
)
async def test_missed_fire_times_fire_as_the_schedule_says(
    office: Office, policy: dict[str, Any], expected: list[datetime]
) -> None:
    office.now = SIX - MINUTE
    await office.publish({**HOURLY, **policy})
    office.now = SIX + 4 * HOUR + timedelta(seconds=30)
    await (await office.master()).fire_due()
    assert await office.fired() == expected
    (one,) = await office.schedules()
    assert one.next_fire_at == SIX + 5 * HOUR


async def test_great_many_missed_fire_times_come_in_portions_and_hold_up_nobody(
    office: Office,
) -> None:
    await office.publish({"cron": "* * * * *", "missed": "all"}, name="often")
    office.now += 4 * DAY
    (daily,) = await office.publish(DAILY, name="seldom")
    assert daily.next_fire_at is not None
    first, office.now = office.now - 4 * DAY + MINUTE, daily.next_fire_at
    scheduler = await office.master()
    assert await scheduler.fire_due() == 0.0
    by_schedule = Counter(one.schedule_id for one in await office.commands())
    assert by_schedule[daily.id] == 1
    assert by_schedule.total() == 1_001
    polls = 1
    while await scheduler.fire_due() == 0.0:
        polls += 1
    minutes = int((office.now - first) / MINUTE) + 1
    assert polls == minutes // 1_000
    often = [one.logical_time for one in await office.commands() if one.schedule_id != daily.id]
    assert often == times(first, MINUTE, minutes)


async def test_calendar_that_changed_holds_from_the_next_fire_on(office: Office) -> None:
    await office.close_on(SIX.date() + DAY)
    await office.publish({**DAILY, "calendar": "closed"})
    await office.close_on(SIX.date(), SIX.date() + 2 * DAY)
    scheduler = await office.master()
    office.now = SIX
    await scheduler.fire_due()
    assert await office.fired() == []  # planned for a day that is left out now
    (one,) = await office.schedules()
    assert one.next_fire_at == SIX + DAY
    office.now = SIX + DAY
    await scheduler.fire_due()
    assert await office.fired() == [SIX + DAY]
    (one,) = await office.schedules()
    assert one.next_fire_at == SIX + 3 * DAY


async def test_schedule_fires_from_its_start_to_its_end_and_never_again(office: Office) -> None:
    bounds = {"start": "2026-03-02T06:00", "end": "2026-03-02T08:00"}
    await office.publish({**HOURLY, **bounds, "missed": "all"})
    office.now = SIX + DAY
    scheduler = await office.master()
    assert await scheduler.fire_due() == 60.0
    assert await office.fired() == times(SIX, HOUR, 2)
    (one,) = await office.schedules()
    assert one.next_fire_at is None


async def test_change_while_the_master_looks_is_what_fires(office: Office) -> None:
    """What was read before the transaction is not what counts."""
    (before,) = await office.publish({**DAILY, "parameters": {"n": "old"}})
    office.now = SIX

    class Slow(Scheduler):
        async def _fire_all(self, overdue: Sequence[StoredSchedule]) -> bool:
            assert list(overdue) == [before]
            await office.publish({"cron": "0 0 7 * * ?", "parameters": {"n": "new"}})
            return await super()._fire_all(overdue)

    scheduler = await office.master()
    await office.scheduler(scheduler._engine, Slow).fire_due()
    (start,) = await office.commands()
    assert (start.logical_time, start.parameters) == (SIX, {"n": "new"})
    (after,) = await office.schedules()
    assert (after.id, after.next_fire_at) == (before.id, SIX + HOUR)


async def test_schedule_that_was_taken_away_while_the_master_looks_does_not_fire(
    office: Office,
) -> None:
    await office.publish(DAILY, HOURLY)
    office.now = SIX

    class Slow(Scheduler):
        async def _fire_all(self, overdue: Sequence[StoredSchedule]) -> bool:
            await office.publish(HOURLY)
            return await super()._fire_all(overdue)

    scheduler = await office.master()
    await office.scheduler(scheduler._engine, Slow).fire_due()
    (hourly,) = await office.schedules()
    assert [one.schedule_id for one in await office.commands()] == [hourly.id]


async def _refuse(office: Office, schedule_id: int) -> None:
    """Make the database refuse the commands of one schedule."""
    condition = f"NEW.schedule_id = {schedule_id}"
    if office.database.kind == "sqlite":
        statements = [
            "CREATE TRIGGER refuse BEFORE INSERT ON command "
            f"WHEN {condition} BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        ]
    else:
        statements = [
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'not this one'; END $$",
            "CREATE TRIGGER refuse BEFORE INSERT ON command FOR EACH ROW "
            f"WHEN ({condition}) EXECUTE FUNCTION refuse()",
        ]
    async with office.database.unit_of_work() as uow:
        for statement in statements:
            await uow.connection.execute(text(statement))
        await uow.commit()


async def _lose_zone(office: Office, schedule_id: int) -> None:
    """Name a time zone that this installation does not know."""
    async with office.database.unit_of_work() as uow:
        broken = update(schedule).where(schedule.c.id == schedule_id)
        await uow.connection.execute(broken.values(timezone="No/Where"))
        await uow.commit()


@pytest.mark.parametrize("harm", [_refuse, _lose_zone])
async def test_schedule_that_cannot_fire_holds_up_no_other(
    office: Office, harm: Callable[[Office, int], Any]
) -> None:
    bad, *good = await office.publish(*({**HOURLY, "parameters": {"n": str(n)}} for n in range(9)))
    await harm(office, bad.id)
    scheduler = await office.master()
    for hour in range(2):
        office.now = SIX + hour * HOUR
        with capture_logs() as logged:
            for _ in range(3):  # whatever notifications: the bad one is no reason to hurry
                assert await scheduler.fire_due() == 60.0
        reported = [one["item"] for one in logged if one["log_level"] == "error"]
        assert reported == ([str(bad.id)] if hour == 0 else [])
        fired = Counter(one.schedule_id for one in await office.commands())
        assert fired == dict.fromkeys((one.id for one in good), hour + 1)


async def test_schedule_that_could_not_fire_is_tried_again(office: Office) -> None:
    (one,) = await office.publish(DAILY)
    await _lose_zone(office, one.id)
    scheduler = await office.master()
    office.now = SIX
    await scheduler.fire_due()
    async with office.database.unit_of_work() as uow:
        await uow.connection.execute(update(schedule).values(timezone="UTC"))
        await uow.commit()
    office.now = SIX + MINUTE
    scheduler._engine.quarantine.try_again(ItemKind.SCHEDULE, one.id)  # its time has come
    await scheduler.fire_due()
    assert await office.fired() == [SIX]
    assert not scheduler._engine.quarantine.held(ItemKind.SCHEDULE)
