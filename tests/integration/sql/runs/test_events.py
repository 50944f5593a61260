"""The history of changes: in order, complete, once."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from shoal.core.runs.records import ChangeEvent
from shoal.sql import Database, EventTail, UnitOfWork
from shoal.sql.repositories.events import NewEvent
from tests.integration.sql.given import NOW


async def _write(uow: UnitOfWork, *names: str) -> None:
    """Write events, behind another write as everywhere."""
    await uow.projects.ensure("writer of " + names[0], NOW)
    await uow.events.add([NewEvent(NOW, "test", "demo", {"name": name}) for name in names])


async def _committed(database: Database, *names: str) -> None:
    async with database.unit_of_work() as uow:
        await _write(uow, *names)
        await uow.commit()


def _names(events: list[ChangeEvent]) -> list[str]:
    return [event.data["name"] for event in events]


@pytest.fixture
async def postgresql(postgresql_copy: str) -> AsyncIterator[Database]:
    """SQLite cannot interleave two writers."""
    async with Database(postgresql_copy) as database:
        yield database


async def test_events_are_read_in_order_and_filtered(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.events.add(
            [
                NewEvent(NOW, "task.state", project, {"n": n}, instance, n)
                for n, (project, instance) in enumerate([("a", 1), ("b", 1), ("a", 2), ("a", 1)])
            ]
        )
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        events = await uow.events.after(0, 10)
        assert events[1] == ChangeEvent(events[1].id, NOW, "task.state", "b", 1, 1, {"n": 1})
        assert [e.data["n"] for e in events] == [0, 1, 2, 3]
        assert await uow.events.after(events[0].id, 2) == events[1:3]
        assert await uow.events.after(0, 10, until=events[1].id) == events[:2]
        assert await uow.events.after(0, 10, project="a") == [events[0], *events[2:]]
        one_instance = await uow.events.after(0, 10, instance_id=1, project="a")
        assert one_instance == [events[0], events[3]]
        assert await uow.events.last_id() == events[3].id


async def test_pruning_deletes_the_oldest_in_portions(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.events.add(
            [NewEvent(NOW + timedelta(days=day), "test", "demo", {}) for day in range(6)]
        )
        last = await uow.events.last_id()
        await uow.commit()
    async with database.unit_of_work() as uow:
        before = NOW + timedelta(days=4)
        assert await uow.events.prune(before, limit=3) == 3
        assert await uow.events.prune(before, limit=3) == 1
        assert await uow.events.prune(before, limit=3) == 0
        assert [e.id for e in await uow.events.after(0, 10)] == [last - 1, last]
        await uow.commit()
    async with database.unit_of_work() as uow:
        await uow.events.prune(NOW + timedelta(days=99))
        await uow.events.add([NewEvent(NOW, "test", "demo", {})])
        assert await uow.events.last_id() > last  # ids are never used again


async def test_tail_returns_each_event_once_in_portions(database: Database) -> None:
    await _committed(database, "a", "b", "c")
    tail = EventTail(database, after=0, limit=2)
    assert _names(await tail.next_batch()) == ["a", "b"]
    await _committed(database, "d")
    assert _names(await tail.next_batch()) == ["c", "d"]
    assert await tail.next_batch() == []


async def test_tail_starts_now_or_where_the_consumer_was(database: Database) -> None:
    await _committed(database, "old")
    tail = EventTail(database)
    assert tail.position is None
    assert await tail.next_batch() == []
    await _committed(database, "new", "newer")
    seen = await tail.next_batch()
    assert _names(seen) == ["new", "newer"]
    assert tail.position == seen[-1].id
    resumed = EventTail(database, after=seen[0].id)
    assert _names(await resumed.next_batch()) == ["newer"]


async def test_tail_of_an_empty_table_starts_at_its_beginning(database: Database) -> None:
    tail = EventTail(database)
    assert await tail.start() == 0
    await _committed(database, "first")
    assert _names(await tail.next_batch()) == ["first"]


async def test_transaction_that_commits_late_is_not_missed(postgresql: Database) -> None:
    tail = EventTail(postgresql)
    await tail.start()
    async with postgresql.unit_of_work() as slow:
        await _write(slow, "slow 1", "slow 2")
        async with postgresql.unit_of_work() as quick:
            await _write(quick, "quick")
            await quick.commit()
        assert await tail.next_batch() == []  # "quick" is visible, but not yet in order
        await _committed(postgresql, "another")
        assert await tail.next_batch() == []
        await slow.commit()
    assert _names(await tail.next_batch()) == ["slow 1", "slow 2", "quick", "another"]
    assert await tail.next_batch() == []


async def test_interleaved_events_of_two_transactions_come_in_order(postgresql: Database) -> None:
    tail = EventTail(postgresql, after=0)
    async with postgresql.unit_of_work() as one, postgresql.unit_of_work() as two:
        await _write(one, "1")
        await _write(two, "2")
        await _write(one, "3")
        await _write(two, "4")
        await two.commit()
        assert await tail.next_batch() == []
        await one.commit()
    assert _names(await tail.next_batch()) == ["1", "2", "3", "4"]


async def test_older_event_of_a_younger_transaction_is_not_missed(postgresql: Database) -> None:
    """The only running transaction is younger than all that have ended."""
    tail = EventTail(postgresql, after=0)
    async with postgresql.unit_of_work() as older:
        await older.projects.ensure("older", NOW)  # has its transaction number now
        async with postgresql.unit_of_work() as younger:
            await _write(younger, "1")
            await _write(older, "2")
            await older.commit()
            assert await tail.next_batch() == []
            await younger.commit()
    assert _names(await tail.next_batch()) == ["1", "2"]


async def test_transaction_that_is_rolled_back_holds_nobody_up(postgresql: Database) -> None:
    tail = EventTail(postgresql, after=0)
    async with postgresql.unit_of_work() as later:
        async with postgresql.unit_of_work() as slow:
            await _write(slow, "never")
            await _committed(postgresql, "quick")
            await _write(later, "later")
            assert await tail.next_batch() == []
        # "later" began before the gap was seen to be one, so it is waited for as well.
        assert await tail.next_batch() == []
        await later.commit()
    assert _names(await tail.next_batch()) == ["quick", "later"]


async def test_new_transactions_do_not_hold_up_what_is_settled(postgresql: Database) -> None:
    tail = EventTail(postgresql, after=0)
    async with postgresql.unit_of_work() as slow:
        await _write(slow, "never")
        await _committed(postgresql, "quick")
        assert await tail.next_batch() == []
    async with postgresql.unit_of_work() as newer:
        await _write(newer, "newer")
        assert _names(await tail.next_batch()) == ["quick"]
        await newer.commit()
    assert _names(await tail.next_batch()) == ["newer"]


async def test_gap_is_not_given_up_however_long_its_transaction_is_open(
    postgresql: Database,
) -> None:
    now_s = 0.0
    tail = EventTail(postgresql, after=0, clock=lambda: now_s)
    async with postgresql.unit_of_work() as slow:
        await _write(slow, "slow")
        await _committed(postgresql, "quick")
        for now_s in (0.0, 2.0, 15.0, 16.0, 3_600.0):
            assert await tail.next_batch() == []
            await _committed(postgresql, f"at {now_s:g} s")
        await slow.commit()
    names = _names(await tail.next_batch())
    assert (names[:2], len(names)) == (["slow", "quick"], 7)


async def test_transaction_that_writes_no_events_does_not_hold_up_a_gap_for_long(
    postgresql: Database,
) -> None:
    """As a job of another database of the server, which may take hours."""
    now_s = 0.0
    tail = EventTail(postgresql, after=0, ask_after_s=5.0, clock=lambda: now_s)
    async with postgresql.unit_of_work() as foreign:
        await foreign.projects.ensure("foreign", NOW)  # has its transaction number now
        async with postgresql.unit_of_work() as gone:
            await _write(gone, "never")
            await _committed(postgresql, "quick")
        assert await tail.next_batch() == []
        now_s = 4.9
        assert await tail.next_batch() == []
        now_s = 5.0
        assert _names(await tail.next_batch()) == ["quick"]
        await _committed(postgresql, "next")
        assert _names(await tail.next_batch()) == ["next"]


async def test_writer_that_began_later_does_not_hold_up_a_gap(postgresql: Database) -> None:
    now_s = 0.0
    tail = EventTail(postgresql, after=0, ask_after_s=5.0, clock=lambda: now_s)
    async with postgresql.unit_of_work() as foreign:
        await foreign.projects.ensure("foreign", NOW)
        async with postgresql.unit_of_work() as first:
            await _write(first, "never")
            await _committed(postgresql, "quick")
            assert await tail.next_batch() == []
            now_s = 5.0
            assert await tail.next_batch() == []  # it is looked up, and is open
        async with postgresql.unit_of_work() as later:
            await _write(later, "later")
            assert _names(await tail.next_batch()) == ["quick"]
            await later.commit()
        assert _names(await tail.next_batch()) == ["later"]


async def test_tail_that_starts_now_sees_what_is_being_committed(postgresql: Database) -> None:
    await _committed(postgresql, "old")
    async with postgresql.unit_of_work() as slow:
        await _write(slow, "slow")
        await _committed(postgresql, "quick")
        tail = EventTail(postgresql)
        await tail.start()
        await slow.commit()
    assert _names(await tail.next_batch()) == ["slow", "quick"]


async def test_tail_misses_nothing_while_many_write(database: Database) -> None:
    tail = EventTail(database, after=0, limit=20)
    done = asyncio.Event()
    seen: list[ChangeEvent] = []

    async def write(writer: int) -> None:
        for n in range(15):
            async with database.unit_of_work() as uow:
                await _write(uow, f"{writer}.{n}")
                if n % 4 != 3:
                    await uow.commit()

    async def read() -> None:
        while not done.is_set():
            seen.extend(await tail.next_batch())
        while batch := await tail.next_batch():
            seen.extend(batch)

    reading = asyncio.create_task(read())
    await asyncio.gather(*(write(writer) for writer in range(5)))
    done.set()
    await reading
    assert sorted(_names(seen)) == sorted(
        f"{writer}.{n}" for writer in range(5) for n in range(15) if n % 4 != 3
    )
    ids = [event.id for event in seen]
    assert ids == sorted(set(ids))
