"""Grants between projects, as they are stored."""

from typing import Any

import pytest

from shoal.core.access.grants import Grant
from shoal.sql import Database
from shoal.sql.errors import NotFound
from tests.integration.sql.given import NOW


async def _give(database: Database, giver: str, taker: str, what: Grant) -> bool:
    async with database.unit_of_work() as uow:
        home = await uow.projects.ensure(giver, NOW)
        is_new = await uow.grants.put(home.id, taker, what, NOW)
        await uow.commit()
    return is_new


async def _given(database: Database, needs: Grant, *pairs: tuple[str, str]) -> set[Any]:
    async with database.unit_of_work(read_only=True) as uow:
        return set(await uow.grants.given(pairs, needs))


async def test_a_project_allows_itself_everything_and_others_what_it_says(
    database: Database,
) -> None:
    assert await _give(database, "a", "b", Grant.SEE)
    pairs = ("a", "b"), ("a", "a"), ("b", "a"), ("a", "c"), ("none", "b")
    assert await _given(database, Grant.SEE, *pairs) == {("a", "b"), ("a", "a")}
    assert await _given(database, Grant.RUN, *pairs) == {("a", "a")}
    assert not await _give(database, "a", "b", Grant.RUN)
    assert await _given(database, Grant.RUN, *pairs) == {("a", "b"), ("a", "a")}
    assert await _given(database, Grant.SEE, *pairs) == {("a", "b"), ("a", "a")}


async def test_what_is_taken_back_is_allowed_no_more(database: Database) -> None:
    await _give(database, "a", "*", Grant.RUN)
    await _give(database, "a", "c", Grant.SEE)
    assert await _given(database, Grant.RUN, ("a", "b"), ("a", "c")) == {("a", "b"), ("a", "c")}
    async with database.unit_of_work() as uow:
        home = await uow.projects.get("a")
        await uow.grants.remove(home.id, "*")
        assert [(one.taker, one.what) for one in await uow.grants.list(home.id)] == [
            ("c", Grant.SEE)
        ]
        with pytest.raises(NotFound):
            await uow.grants.remove(home.id, "*")
        await uow.commit()
    assert await _given(database, Grant.SEE, ("a", "b"), ("a", "c")) == {("a", "c")}
    assert await _given(database, Grant.RUN, ("a", "b"), ("a", "c")) == set()
