"""Commands that have been pending for too long, and those that are right to be."""

from dataclasses import replace
from datetime import timedelta

import pytest

from shoal.core.runs.commands import CommandType, NewCommand, Parent
from shoal.core.runs.quarantine import ItemKind, QuarantinedItem
from shoal.sql import Database
from tests.integration.sql.given import LATER, NOW, accepted, published, start


async def overdue(database: Database, full: tuple[int, ...] = (), limit: int = 100) -> list[int]:
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.commands.overdue(NOW + timedelta(seconds=1), full, limit)
    return [one.id for one in found]


async def test_only_pending_commands_of_that_age_are_overdue(database: Database) -> None:
    workflow = await published(database)
    first, second, done = await accepted(database, *(start(workflow) for _ in range(3)))
    async with database.unit_of_work() as uow:
        await uow.commands.add(start(workflow), LATER)
        await uow.commands.refuse(done.id, "no", LATER)
        await uow.commit()
    assert await overdue(database) == [first.id, second.id]
    assert await overdue(database, limit=1) == [first.id]
    async with database.unit_of_work(read_only=True) as uow:
        [one] = await uow.commands.overdue(LATER, (), 1)
    assert (one.partition, one.created_at) == (first.partition, NOW)


async def test_starts_of_full_masters_are_not_overdue(database: Database) -> None:
    workflow = await published(database)
    child = replace(start(workflow, partition=3), parent=Parent(1, 2, 0))
    stop = NewCommand(CommandType.STOP, 3, "stop", workflow, instance_id=5)
    waiting, other, of_parent, request = await accepted(
        database, start(workflow, partition=3), start(workflow, partition=4), child, stop
    )
    assert await overdue(database) == [waiting.id, other.id, of_parent.id, request.id]
    # Starts of sub-workflows, and requests, do not wait for room.
    assert await overdue(database, (3,)) == [other.id, of_parent.id, request.id]


@pytest.mark.parametrize("kind", [ItemKind.COMMAND, ItemKind.INSTANCE])
async def test_quarantined_commands_are_not_overdue(database: Database, kind: ItemKind) -> None:
    workflow = await published(database)
    stop = NewCommand(CommandType.STOP, 3, "stop", workflow, instance_id=77)
    begun, request = await accepted(database, start(workflow), stop)
    item = str(begun.id if kind is ItemKind.COMMAND else 77)
    async with database.unit_of_work() as uow:
        await uow.quarantine.put([QuarantinedItem(kind, item, 3, "odd", 1, NOW)])
        await uow.commit()
    assert await overdue(database) == [request.id if kind is ItemKind.COMMAND else begun.id]
