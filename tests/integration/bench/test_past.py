"""A past made of copies is one that the engine could have made, and it goes on behind it."""

from pathlib import Path

from bench.growth.driven_engine import diamond, driven_engine
from bench.growth.past import multiply
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database

COPIES = 3


async def test_copies_are_ended_instances_with_all_their_tasks(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shoal.db"
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
