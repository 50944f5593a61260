"""The audit as it is stored: with its change or not at all, never changed, linked by many."""

import asyncio
import json
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.access.audit.chain import GENESIS, PRUNED, ChainHead, Verifier
from shoal.core.access.audit.entries import EntryFilter, NewEntry, Outcome
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import SqlError
from shoal.sql.repositories.access.audit import Audit
from tests.integration.sql.given import NOW


def entry(number: int = 1, **changes: Any) -> NewEntry:
    known = {"action": "secret.set", "principal": "ada", "project": "p", "object": str(number)}
    return NewEntry(at=NOW + timedelta(days=number), **{**known, **changes})


async def store(database: Database, *entries: NewEntry) -> None:
    async with database.unit_of_work() as uow:
        await uow.audit.add(entries)
        await uow.commit()


async def link(database: Database, at_most: int = 100) -> bool:
    async with database.unit_of_work() as uow:
        is_done = await uow.audit.link(await uow.audit.pending(0, at_most))
        if is_done:
            await uow.commit()
    return is_done


async def findings(database: Database) -> list[str]:
    async with database.unit_of_work(read_only=True) as uow:
        return await _findings(uow)


async def _findings(uow: UnitOfWork) -> list[str]:
    verifier = Verifier()
    for one in await uow.audit.links(0, 1000):
        shown = None if one.entry is None else one.entry.document()
        verifier.read({**asdict(one), "entry": shown})
    return verifier.end()


async def objects(database: Database, project: str | None = None, **wanted: Any) -> list[str]:
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.audit.list(EntryFilter(**wanted), None, 100, project)
    return [one.object for one in found]


async def test_entry_is_committed_with_its_change_or_not_at_all(database: Database) -> None:
    async def record(uow: UnitOfWork) -> None:
        await uow.audit.add([entry()])

    async def fail(_: UnitOfWork) -> None:
        raise RuntimeError("no entry")

    async with database.recording(record).unit_of_work() as uow:
        await uow.projects.ensure("kept", NOW)
    assert await objects(database) == [], "nothing was committed"
    async with database.recording(record).unit_of_work() as uow:
        await uow.projects.ensure("kept", NOW)
        await uow.commit()
    assert await objects(database) == ["1"]
    async with database.recording(fail).unit_of_work() as uow:
        await uow.projects.ensure("lost", NOW)
        with pytest.raises(RuntimeError):
            await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert [one.name for one in await uow.projects.list()] == ["kept"]
    async with database.recording(fail).unit_of_work(read_only=True) as uow:
        await uow.commit()


async def test_entries_are_filtered_and_come_in_pages(database: Database) -> None:
    await store(
        database,
        entry(1),
        entry(2, project="q", principal="bob"),
        entry(3, action="secret.delete", outcome=Outcome.REFUSED),
        entry(4, action="secrets.rotate", request_id="r"),
    )
    assert await objects(database) == ["4", "3", "2", "1"]
    assert await objects(database, project="q") == ["2"]
    assert await objects(database, principal="bob") == ["2"]
    assert await objects(database, action="secret.*") == ["3", "2", "1"]
    assert await objects(database, action="secret.set") == ["2", "1"]
    assert await objects(database, outcome=Outcome.REFUSED) == ["3"]
    assert await objects(database, request="r") == ["4"]
    since, until = NOW + timedelta(days=2), NOW + timedelta(days=4)
    assert await objects(database, since=since, until=until) == ["3", "2"]
    async with database.unit_of_work(read_only=True) as uow:
        first = await uow.audit.list(EntryFilter(), None, 2)
        rest = await uow.audit.list(EntryFilter(), first[-1].id, 10)
    assert [one.object for one in (*first, *rest)] == ["4", "3", "2", "1"]


async def test_anything_that_callers_send_can_be_stored(database: Database) -> None:
    odd = "\0\ud800ü" * 500
    await store(database, entry(1, principal=odd, object=odd, address=odd, detail={"x": odd}))
    assert await link(database)
    assert await findings(database) == []


async def test_many_link_at_once_and_each_entry_has_one_place(database: Database) -> None:
    await store(database, *(entry(number) for number in range(30)))
    done = await asyncio.gather(*(link(database, 7) for _ in range(12)))
    assert any(done)
    while await _is_pending(database):
        await link(database, 7)
    async with database.unit_of_work(read_only=True) as uow:
        links = await uow.audit.links(0, 100)
        head = await uow.audit.head()
    assert [one.position for one in links] == list(range(1, 31))
    assert sorted(int(one.entry.object) for one in links if one.entry) == list(range(30))
    assert (head.position, head.hash) == (30, links[-1].hash)
    assert await findings(database) == []


async def _is_pending(database: Database) -> bool:
    async with database.unit_of_work(read_only=True) as uow:
        return bool(await uow.audit.pending(0, 1))


async def test_two_that_link_the_same_entries_do_not_both(database: Database) -> None:
    """What the second has read is linked meanwhile."""
    await store(database, entry(1), entry(2))
    async with database.unit_of_work(read_only=True) as uow:
        pending = await uow.audit.pending(0, 10)
    assert await link(database)
    async with database.unit_of_work() as uow:
        assert not await uow.audit.link(pending)


async def test_nothing_is_linked_at_a_place_that_is_taken(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has linked other entries since the head was read."""
    await store(database, entry(1))
    assert await link(database)
    await store(database, entry(2), entry(3))

    async def earlier(_: Audit) -> ChainHead:
        return ChainHead(0, GENESIS)

    with monkeypatch.context() as patch:
        patch.setattr(Audit, "head", earlier)
        assert not await link(database)
    assert await link(database)
    assert await findings(database) == []


async def test_entry_that_commits_late_is_linked_behind_those_before_it(
    database: Database,
) -> None:
    if database.kind == "sqlite":
        pytest.skip("one transaction at a time")
    async with database.unit_of_work() as late:
        await late.audit.add([entry(1)])
        await store(database, entry(2))
        assert await link(database)
        await late.commit()
    assert await link(database)
    async with database.unit_of_work(read_only=True) as uow:
        links = await uow.audit.links(0, 10)
    assert [one.entry.object for one in links if one.entry] == ["2", "1"]
    assert await findings(database) == []


async def test_database_refuses_to_change_or_delete(database: Database) -> None:
    await store(database, entry(1))
    assert await link(database)
    await store(database, entry(2))
    for statement in (
        "UPDATE audit_entry SET principal = 'eve'",
        "UPDATE audit_link SET hash = 'x'",
        "DELETE FROM audit_entry",
        "DELETE FROM audit_link",
        "DELETE FROM audit_entry WHERE id NOT IN (SELECT entry_id FROM audit_link)",
    ):
        with pytest.raises(SqlError):
            await execute(database, statement)
    assert await objects(database, principal="ada") == ["2", "1"]


async def execute(database: Database, *statements: str) -> None:
    async with database.unit_of_work() as uow:
        for one in statements:
            await uow.connection.execute(text(one))
        await uow.commit()


def _without_guards(database: Database) -> list[str]:
    if database.kind == "sqlite":
        names = ("is_not_changed", "is_kept")
        return [
            f"DROP TRIGGER {table}_{name}"
            for table in ("audit_entry", "audit_link")
            for name in names
        ]
    return [f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in ("audit_entry", "audit_link")]


TAMPERED = (
    "UPDATE audit_entry SET principal = 'eve' WHERE object = '3'",
    "UPDATE audit_entry SET principal_id = 9 WHERE object = '3'",
    "UPDATE audit_entry SET detail = 'junk' WHERE object = '3'",
    "UPDATE audit_entry SET outcome = 'none' WHERE object = '3'",
    "DELETE FROM audit_entry WHERE object = '3'",
    "DELETE FROM audit_link WHERE position = 3",
    "DELETE FROM audit_link WHERE position <= 2",
    "UPDATE audit_link SET entry_id = entry_id + 100 WHERE position = 3",
    "UPDATE audit_link SET position = position + 100 WHERE position > 3",
)


async def test_what_was_changed_without_the_guards_is_found(database: Database) -> None:
    await store(database, *(entry(number) for number in range(1, 6)))
    assert await link(database)
    await execute(database, *_without_guards(database))
    assert await findings(database) == []
    for statement in TAMPERED:
        async with database.unit_of_work() as uow:  # it is rolled back
            await uow.connection.execute(text(statement))
            assert await _findings(uow), statement
    await execute(database, "DELETE FROM audit_link WHERE position <= 2")
    await execute(database, "UPDATE audit_state SET pruned = 2")
    assert await findings(database), "no entry says so"


UNREADABLE = (
    ("outcome", "none"),
    ("detail", "[1]"),
    ("detail", "[" * 100_000),
    ("detail", '{"a": ' + "9" * 5_000 + "}"),
    ("detail", '{"a": NaN}'),
    ("detail", '{"a": "\\ud800"}'),
)


@pytest.mark.parametrize(("column", "value"), UNREADABLE)
async def test_entry_that_cannot_be_read_is_shown_beside_the_others(
    database: Database, column: str, value: str
) -> None:
    await store(database, *(entry(number) for number in range(1, 4)))
    await execute(database, *_without_guards(database))
    async with database.unit_of_work() as uow:
        change = text(f"UPDATE audit_entry SET {column} = :value WHERE object = '2'")
        await uow.connection.execute(change, {"value": value})
        found = await uow.audit.list(EntryFilter(), None, 10)
        assert [one.object for one in found] == ["3", "2", "1"]
        assert [set(one.detail) & {"unreadable"} for one in found] == [set(), {"unreadable"}, set()]
        assert all(json.dumps(one.document(), ensure_ascii=False).encode() for one in found)
        assert await uow.audit.link(await uow.audit.pending(0, 10))
        assert len(await uow.audit.links(0, 10)) == 3


async def test_entry_of_an_impossible_time_is_pruned_with_its_neighbours(
    database: Database,
) -> None:
    await store(database, *(entry(number) for number in range(1, 5)))
    assert await link(database)
    await execute(database, *_without_guards(database))
    never = "'infinity'" if database.kind == "postgresql" else str(2**62)
    await execute(database, f"UPDATE audit_entry SET at = {never} WHERE object = '2'")
    async with database.unit_of_work() as uow:
        assert len(await uow.audit.list(EntryFilter(), None, 10)) == 4
        _, removed = await uow.audit.prune(NOW + timedelta(days=40), 10)
        assert removed == 3


async def test_pruned_entries_are_gone_and_the_rest_can_be_verified(database: Database) -> None:
    await store(database, *(entry(number) for number in range(1, 11)))
    assert await link(database)

    async def prune(day: int, at_most: int) -> int:
        async with database.unit_of_work() as uow:
            last, removed = await uow.audit.prune(NOW + timedelta(days=day), at_most)
            if removed:
                says = {"position": last.position, "hash": last.hash}
                await uow.audit.add([entry(20, action=PRUNED, detail=says)])
                await uow.commit()
        if removed:
            assert await link(database)
        return removed

    assert await prune(1, 10) == 0
    assert await prune(5, 3) == 3
    assert await prune(5, 3) == 1
    assert await objects(database, action="secret.set") == ["10", "9", "8", "7", "6", "5"]
    assert await findings(database) == []
    assert await prune(99, 100) == 7, "the last one stays"
    assert await findings(database) == []
    await execute(
        database, *_without_guards(database), "DELETE FROM audit_link WHERE position = 12"
    )
    assert await findings(database)
