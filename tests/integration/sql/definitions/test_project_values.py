"""Parameters and secrets of projects: changes at the same time, and what is kept."""

import asyncio

import pytest

from shoal.sql import Database
from shoal.sql.errors import NotFound
from shoal.sql.repositories.definitions.secrets import StoredSecret
from tests.integration.sql.given import LATER, NOW


async def _project(database: Database, name: str = "demo") -> None:
    async with database.unit_of_work() as uow:
        await uow.projects.ensure(name, NOW)
        await uow.commit()


async def _change(database: Database, name: str, value: str | None) -> bool:
    async with database.unit_of_work() as uow:
        known = await uow.projects.change_parameter("demo", name, value)
        await uow.commit()
    return known


async def test_changes_of_different_parameters_at_once_are_all_kept(database: Database) -> None:
    await _project(database)
    names = [f"p{n}" for n in range(12)]
    assert not any(await asyncio.gather(*(_change(database, name, name) for name in names)))
    assert (
        await asyncio.gather(*(_change(database, name, None) for name in names[:6])) == [True] * 6
    )
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.projects.parameters("demo") == {name: name for name in names[6:]}
        assert (await uow.projects.get("demo")).parameters == {name: name for name in names[6:]}


async def test_values_belong_to_a_project_that_exists(database: Database) -> None:
    async with database.unit_of_work() as uow:
        with pytest.raises(NotFound, match="project nobody"):
            await uow.projects.parameters("nobody")
        with pytest.raises(NotFound, match="project nobody"):
            await uow.projects.change_parameter("nobody", "x", "1")
        with pytest.raises(NotFound, match="project nobody"):
            await uow.secrets.put("nobody", "x", "c", NOW)
        assert await uow.secrets.stored("nobody") == {}


async def _put(database: Database, ciphertext: str) -> bool:
    async with database.unit_of_work() as uow:
        is_new = await uow.secrets.put("demo", "db", ciphertext, LATER)
        await uow.commit()
    return is_new


async def test_two_who_set_the_same_secret_at_once_make_one(database: Database) -> None:
    await _project(database)
    done = await asyncio.gather(*(_put(database, f"c{n}") for n in range(4)))
    assert sorted(done) == [False, False, False, True]
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.secrets.stored("demo")).keys() == {"db"}


async def test_secrets_of_one_project_are_no_other_ones(database: Database) -> None:
    for project in ("demo", "other"):
        await _project(database, project)
    async with database.unit_of_work() as uow:
        assert await uow.secrets.put("demo", "db", "one", NOW)
        assert await uow.secrets.put("other", "db", "two", NOW)
        assert not await uow.secrets.put("demo", "db", "three", LATER)
        await uow.commit()
    async with database.unit_of_work() as uow:
        assert await uow.secrets.stored("demo") == {"db": StoredSecret("three")}
        found = await uow.secrets.get("demo", "db")
        assert (found.created_at, found.updated_at) == (NOW, LATER)
        await uow.secrets.delete("demo", "db")
        with pytest.raises(NotFound, match="secret demo/db"):
            await uow.secrets.delete("demo", "db")
        assert [one.name for one in await uow.secrets.list("other")] == ["db"]
        assert await uow.secrets.list("demo") == []
