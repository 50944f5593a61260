"""Grants between projects, as they are stored."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.access.grants import Grant
from shoal.sql import Database
from shoal.sql.errors import NotFound
from tests.integration.sql import revisions
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


async def test_definitions_of_before_keep_what_they_reach(empty_url: str) -> None:
    tasks = [
        {"name": "s", "type": "SUB_WORKFLOW", "params": {"workflow": "x", "project": "run"}},
        {"name": "own", "type": "MAP", "params": {"workflow": "x", "project": "home"}},
        {
            "name": "d",
            "type": "DEPENDENT",
            "params": {
                "when": {
                    "all": [
                        {"workflow": "x", "project": "see", "date": "today"},
                        {"any": [{"workflow": "y", "project": "run", "date": "today"}]},
                    ]
                }
            },
        },
    ]
    await revisions.make(empty_url, "0008")
    async with Database(empty_url) as database:
        async with database.unit_of_work() as uow:
            for name in ("home", "run", "see", "other"):
                await uow.projects.ensure(name, NOW)
            home = (await uow.projects.get("home")).id
            c = uow.connection
            await c.execute(
                text(
                    "INSERT INTO workflow (id, project_id, name, description, version, digest, "
                    "tasks, created_at, updated_at) SELECT 1, :home, 'w', '', 1, 'd', 3, "
                    "created_at, created_at FROM project WHERE name = 'home'"
                ),
                {"home": home},
            )
            await c.execute(
                text(
                    "INSERT INTO workflow_version (workflow_id, version, spec, digest, created_at) "
                    "SELECT 1, 1, :spec, 'd', created_at FROM project WHERE name = 'home'"
                ),
                {"spec": json.dumps({"tasks": tasks})},
            )
            await uow.commit()
        await database.migrate()
        pairs = [(giver, "home") for giver in ("run", "see", "other")]
        assert await _given(database, Grant.RUN, *pairs) == {("run", "home")}
        assert await _given(database, Grant.SEE, *pairs) == {("run", "home"), ("see", "home")}
