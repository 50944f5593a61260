"""What a cluster is called, and was: a copy that is given a new name knows what it inherited."""

import pytest
from sqlalchemy import text

from shoal.sql import Database
from shoal.sql.repositories.upkeep.cluster import ClusterName, ClusterNames
from tests.integration.sql.given import LATER, created, published


async def rename(database: Database, uid: str) -> str:
    """Do what docs/storage.md says, and what each process does when it starts."""
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text(f"UPDATE cluster SET uid = '{uid}'"))
        await uow.commit()
    async with database.unit_of_work() as uow:
        found = await uow.cluster.uid()
        await uow.commit()
    return found


async def names(database: Database) -> ClusterNames:
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.cluster.names()


async def upload(database: Database, name: str) -> int:
    async with database.unit_of_work() as uow:
        noted = await uow.resources.begin("demo", name, f"demo/{name}", LATER)
        await uow.commit()
    return noted.id


async def test_a_new_name_begins_behind_the_ids_of_the_former_one(database: Database) -> None:
    first = (await names(database)).present
    assert (first.after_attempt, first.after_resource) == (0, 0)
    last = await upload(database, "a")
    for _ in range(2):  # several processes start
        assert await rename(database, "copy") == "copy"
    found = await names(database)
    assert [one.uid for one in found.names] == [first.uid, "copy"]
    assert found.present == ClusterName("copy", 0, last)
    assert await upload(database, "b") > last


async def test_the_highest_id_counts_rows_that_have_gone(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instances.last_id() == 0
    runs = await created(database, await published(database), 3)
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("DELETE FROM task_instance"))
        await uow.connection.execute(text("DELETE FROM workflow_instance"))
        await uow.commit()
    await rename(database, "copy")
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.instances.last_id() == max(run.id for run in runs)
    assert (await names(database)).present.after_attempt > 0


@pytest.mark.parametrize(
    ("attempt", "uids"),
    [(1, ["c", "b", "a"]), (10, ["c", "b", "a"]), (11, ["c", "b"]), (20, ["c", "b"]), (21, ["c"])],
)
def test_attempt_may_have_run_under_the_name_of_its_time_and_later_ones(
    attempt: int, uids: list[str]
) -> None:
    found = ClusterNames([ClusterName("a"), ClusterName("b", 10), ClusterName("c", 20)])
    assert found.of_attempt(attempt) == uids
