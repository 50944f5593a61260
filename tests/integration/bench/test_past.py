"""A past made of copies is one that the engine could have made, and it goes on behind it."""

from pathlib import Path

import pytest

from bench.growth.driven_engine import diamond, driven_engine
from bench.growth.engine import FIGURE, past
from bench.growth.past import multiply
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database

COPIES = 3


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shoal.db"
    found: str = request.getfixturevalue("postgresql_url")
    return found


async def test_copies_are_ended_instances_with_all_their_tasks(url: str) -> None:
    async with Database(url) as database:
        await database.migrate()
        async with driven_engine(database) as hand:
            await hand.start(diamond(), 1)
            await hand.run(5)
    multiply(url, 1, COPIES)
    async with Database(url) as database:
        async with driven_engine(database) as hand:
            await hand.start(diamond(), 1)
            await hand.run(5)
        async with database.unit_of_work(read_only=True) as uow:
            found = await uow.instances.list(limit=100)
            counts = await uow.instance_counts.tasks([one.id for one in found])
    assert [one.id for one in found] == [5, 4, 3, 2, 1]
    assert {one.state for one in found} == {WorkflowState.SUCCEEDED}
    assert all(one == {TaskState.SUCCEEDED: 5} for one in counts.values())
    assert len(counts) == COPIES + 2


async def test_costs_are_told_for_every_size(tmp_path: Path) -> None:
    rows = await past(f"sqlite:///{tmp_path}/shoal.db", "sqlite", [10])
    # Of a database's server only if this process has one.
    assert FIGURE in {row.figure for row in rows}
    assert {row.size for row in rows} == {10}
    assert all(row.value >= 0 for row in rows)
