"""Ownership in the database: an old epoch writes nothing, a new one waits for the old."""

import asyncio

import pytest

from shoal.core.decide import decide
from shoal.core.runs.events import Begun
from shoal.core.runs.records import PartitionRow
from shoal.core.runs.states import WorkflowState
from shoal.sql import Database
from shoal.sql.errors import Fenced, PartitionsDiffer
from tests.integration.sql.given import NOW, PARTITIONS, created, published
from tests.support.waiting import DEADLINE_S


async def _fence(database: Database, epochs: dict[int, int]) -> None:
    async with database.unit_of_work() as uow:
        await uow.fence(epochs)
        await uow.commit()


async def _raise(database: Database, epochs: dict[int, int], owner: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.partitions.raise_epochs(epochs, owner)
        await uow.commit()


async def _all(database: Database) -> list[PartitionRow]:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.partitions.all()


async def test_new_cluster_has_unowned_partitions(database: Database) -> None:
    assert await _all(database) == [PartitionRow(n, 0, None) for n in range(PARTITIONS)]


async def test_number_of_partitions_is_fixed_at_the_first_start(database: Database) -> None:
    await _raise(database, {3: 7}, "m1")
    async with database.unit_of_work() as uow:
        await uow.partitions.ensure(PARTITIONS)
        with pytest.raises(PartitionsDiffer, match=f"set partitions to {PARTITIONS} everywhere"):
            await uow.partitions.ensure(PARTITIONS + 1)
        with pytest.raises(PartitionsDiffer):
            await uow.partitions.ensure(PARTITIONS - 1)
    assert (await _all(database))[3] == PartitionRow(3, 7, "m1")


async def test_first_starts_at_once_agree(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await database.migrate()

        async def ensure() -> None:
            async with database.unit_of_work() as uow:
                await uow.partitions.ensure(64)
                await uow.commit()

        await asyncio.gather(*(ensure() for _ in range(5)))
        assert [row.index for row in await _all(database)] == list(range(64))


async def test_epoch_only_grows(database: Database) -> None:
    await _raise(database, {0: 10, 1: 10, 2: 10}, "m1")
    await _raise(database, {1: 11}, "m2")
    with pytest.raises(Fenced) as caught:
        await _raise(database, {0: 12, 1: 9, 2: 12}, "m3")
    assert caught.value.partitions == {1}
    with pytest.raises(Fenced) as caught:
        await _raise(database, {1: 11}, "m3")
    assert caught.value.partitions == {1}
    assert (await _all(database))[:3] == [
        PartitionRow(0, 10, "m1"),
        PartitionRow(1, 11, "m2"),
        PartitionRow(2, 10, "m1"),
    ]


async def test_owner_may_repeat_its_own_takeover(database: Database) -> None:
    """The answer to its commit may have been lost."""
    await _raise(database, {0: 10}, "m1")
    await _raise(database, {0: 10}, "m1")
    assert (await _all(database))[0] == PartitionRow(0, 10, "m1")


async def test_unknown_partition_is_fenced(database: Database) -> None:
    with pytest.raises(Fenced):
        await _raise(database, {PARTITIONS: 1}, "m1")
    with pytest.raises(Fenced):
        await _fence(database, {PARTITIONS: 0})


async def test_fence_names_every_partition_that_was_lost(database: Database) -> None:
    await _raise(database, {0: 5, 1: 5, 2: 5}, "m1")
    await _raise(database, {0: 6, 2: 9}, "m2")
    with pytest.raises(Fenced) as caught:
        await _fence(database, {0: 5, 1: 5, 2: 5})
    assert caught.value.partitions == {0, 2}
    assert not caught.value.retriable
    await _fence(database, {1: 5})
    await _fence(database, {})


async def test_successor_waits_for_a_write_under_way(database: Database, ready_url: str) -> None:
    """The write happens entirely before the takeover, which sees its result."""
    (run,) = await created(database, await published(database))
    await _raise(database, {0: 1}, "old")
    taken_over = asyncio.Event()

    async with Database(ready_url) as successor:

        async def take_over() -> WorkflowState:
            await _raise(successor, {0: 2}, "new")
            taken_over.set()
            async with successor.unit_of_work(read_only=True) as uow:
                return (await uow.instances.run(run.id)).state

        async with database.unit_of_work() as uow:
            await uow.fence({0: 1})
            await uow.connection.check()
            taking = asyncio.create_task(take_over())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(taken_over.wait(), 0.3)
            decision = decide(run, Begun(NOW))
            await uow.instances.save([(run, decision)], NOW)
            await uow.commit()
        assert await asyncio.wait_for(taking, DEADLINE_S) is WorkflowState.RUNNING


async def test_fence_does_not_keep_out_the_same_owner(postgresql_copy: str) -> None:
    """(SQLite has one writer at a time anyway.)"""
    async with (
        Database(postgresql_copy) as database,
        database.unit_of_work() as one,
        database.unit_of_work() as two,
    ):
        for uow in (one, two):
            await uow.fence({0: 0})
            await asyncio.wait_for(uow.connection.check(), DEADLINE_S)


async def test_old_owner_writes_nothing_after_the_takeover(
    database: Database, ready_url: str
) -> None:
    """Old and new owner race for the database: no state of the old one after the new one's."""
    workflow_id = await published(database)
    await _raise(database, {0: 1}, "m1")
    runs = await created(database, workflow_id, 12)
    written = 0
    some_written, taken_over = asyncio.Event(), asyncio.Event()

    async with Database(ready_url) as other:

        async def old_owner() -> None:
            nonlocal written
            for run in runs:
                decision = decide(run, Begun(NOW))
                async with database.unit_of_work() as uow:
                    await uow.fence({0: 1})
                    await uow.instances.save([(run, decision)], NOW)
                    await uow.commit()
                written += 1
                if written == 3:
                    some_written.set()
            # A database that lets the old owner finish first must refuse it all the same.
            await taken_over.wait()
            await _fence(database, {0: 1})

        async def new_owner() -> int:
            await some_written.wait()
            await _raise(other, {0: 2}, "m2")
            taken_over.set()
            async with other.unit_of_work(read_only=True) as uow:
                return sum(
                    run.state is WorkflowState.RUNNING for run in await uow.instances.open_runs(0)
                )

        old, seen = await asyncio.gather(old_owner(), new_owner(), return_exceptions=True)
    assert isinstance(old, Fenced)
    async with database.unit_of_work(read_only=True) as uow:
        states = [run.state for run in await uow.instances.open_runs(0)]
    assert states.count(WorkflowState.RUNNING) == seen == written


async def test_fences_that_refuse_are_heard(database: Database) -> None:
    heard: list[dict[int, int]] = []
    database.on_fenced(lambda epochs: heard.append(dict(epochs)))
    async with database.unit_of_work() as uow:
        await uow.partitions.raise_epochs({1: 10, 2: 20}, "m")
        await uow.commit()
    async with database.unit_of_work() as uow:
        await uow.fence({1: 10, 2: 20})
        await uow.commit()
    assert heard == []
    with pytest.raises(Fenced, match="epoch of partition 2 "):
        await _fence(database, {1: 10, 2: 19})
    assert heard == [{2: 19}]
