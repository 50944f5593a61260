"""Calendars: days of a project, kept while schedules use them."""

import asyncio
from datetime import date

import pytest

from shoal.sql import Database
from shoal.sql.errors import CalendarInUse, NotFound
from shoal.sql.repositories.definitions.calendars import Calendar
from tests.integration.sql.given import LATER, NOW, definition, published

NEW_YEAR, MAY_DAY = date(2026, 1, 1), date(2026, 5, 1)
SCHEDULE = {"cron": "0 6 * * *", "calendar": "closed"}


async def _put(
    database: Database, name: str, *days: date, project: str = "demo"
) -> tuple[Calendar, bool]:
    async with database.unit_of_work() as uow:
        done = await uow.calendars.put(project, name, days, f"about {name}", NOW)
        await uow.commit()
    return done


async def _delete(database: Database, name: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.calendars.delete("demo", name)
        await uow.commit()


async def test_calendar_is_stored_sorted_and_replaced_as_a_whole(database: Database) -> None:
    stored, is_new = await _put(database, "closed", MAY_DAY, NEW_YEAR, MAY_DAY)
    assert is_new
    assert stored == Calendar("demo", "closed", "about closed", (NEW_YEAR, MAY_DAY), NOW)
    changed, is_new = await _put(database, "closed", MAY_DAY)
    assert (changed.days, is_new) == ((MAY_DAY,), False)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.calendars.get("demo", "closed") == changed
        assert (await uow.projects.get("demo")).workflows == 0


async def test_two_who_make_the_same_calendar_at_once_make_one(database: Database) -> None:
    done = await asyncio.gather(*(_put(database, "closed", NEW_YEAR) for _ in range(4)))
    assert sorted(is_new for _, is_new in done) == [False, False, False, True]


async def test_calendars_are_listed_by_project_and_name(database: Database) -> None:
    for project, name in (("demo", "b"), ("demo", "a"), ("another", "z")):
        await _put(database, name, project=project)
    async with database.unit_of_work(read_only=True) as uow:
        names = [(one.project, one.name) for one in await uow.calendars.list()]
        assert names == [("another", "z"), ("demo", "a"), ("demo", "b")]
        assert [one.name for one in await uow.calendars.list("demo", limit=1)] == ["a"]
        assert [one.name for one in await uow.calendars.list(None, ("demo", "a"))] == ["b"]


async def test_days_are_looked_up_by_project_and_name(database: Database) -> None:
    await _put(database, "closed", NEW_YEAR)
    await _put(database, "closed", MAY_DAY, project="another")
    async with database.unit_of_work(read_only=True) as uow:
        here, there = ("demo", "closed"), ("another", "closed")
        assert await uow.calendars.days({here, there, ("demo", "none")}) == {
            here: {NEW_YEAR},
            there: {MAY_DAY},
        }
        assert await uow.calendars.days([]) == {}


async def test_calendar_is_deleted_once_no_schedule_uses_it(database: Database) -> None:
    await _put(database, "closed", NEW_YEAR)
    await published(database, definition("one", schedules=[SCHEDULE, SCHEDULE]))
    await published(database, definition("two", schedules=[{**SCHEDULE, "enabled": False}]))
    with pytest.raises(CalendarInUse, match="used by the schedules of one, two;"):
        await _delete(database, "closed")
    await published(database, definition("one"))
    async with database.unit_of_work() as uow:
        await uow.lifecycle.delete("demo", "two", LATER)
        await uow.commit()
    await _delete(database, "closed")
    for lookup in ("get", "delete"):
        async with database.unit_of_work() as uow:
            with pytest.raises(NotFound, match="calendar demo/closed"):
                await getattr(uow.calendars, lookup)("demo", "closed")


async def test_calendar_cannot_go_while_its_first_user_is_published(database: Database) -> None:
    await _put(database, "closed", NEW_YEAR)
    async with database.unit_of_work() as uow:
        await uow.workflows.publish(definition(schedules=[SCHEDULE]), NOW)
        deleting = asyncio.create_task(_delete(database, "closed"))
        done, _ = await asyncio.wait([deleting], timeout=0.2)
        assert not done
        await uow.commit()
    with pytest.raises(CalendarInUse, match="flow"):
        await deleting
