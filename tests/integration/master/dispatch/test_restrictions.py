"""Whether a task may have its worker group and its environment is asked when it is fetched."""

import asyncio

import pytest

from shoal.core.access.grants import Restricted
from shoal.core.runs.states import WorkflowState
from shoal.master.dispatch.environments import UnknownEnvironment
from shoal.master.dispatch.worker_groups import WorkerGroupNotAllowed, WorkerGroups
from shoal.sql import Database
from tests.integration.master.conftest import Bench
from tests.integration.master.dispatch.payloads import NOW, maker_of, payload, put
from tests.integration.master.services.dependents import ON_SQLITE
from tests.integration.master.statements import noted_reads

pytestmark = pytest.mark.usefixtures("each_query_once")


async def restrict(database: Database, kind: Restricted, name: str, *projects: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.restrictions.put(kind, name, projects, NOW)
        await uow.commit()


async def test_payload_leaves_for_no_worker_group_of_other_projects(
    database: Database,
) -> None:
    await restrict(database, Restricted.WORKER_GROUP, "gpu", "other")
    with pytest.raises(
        WorkerGroupNotAllowed, match="project default may not use the worker group 'gpu'"
    ):
        await payload(database, worker_group="gpu")
    await payload(database)
    await restrict(database, Restricted.WORKER_GROUP, "gpu", "other", "default")
    await payload(database, worker_group="gpu")
    maker = maker_of(database, 0.0)
    await payload(database, maker=maker, worker_group="gpu")
    await restrict(database, Restricted.WORKER_GROUP, "gpu")
    with pytest.raises(WorkerGroupNotAllowed):
        await payload(database, maker=maker, worker_group="gpu")


async def test_many_fetches_at_once_read_the_restrictions_once(
    database: Database,
) -> None:
    statements = await noted_reads(database)
    groups = WorkerGroups(database, 600.0)
    await asyncio.gather(*(groups.require("p", "g") for _ in range(20)))
    assert len([one for one in statements if one.startswith("SELECT")]) == 1


async def test_environment_of_other_projects_is_answered_as_none(
    database: Database,
) -> None:
    await put(database)
    await restrict(database, Restricted.ENVIRONMENT, "ml", "other")
    with pytest.raises(UnknownEnvironment) as hidden:
        await payload(database, "ml")
    async with database.unit_of_work() as uow:
        await uow.environments.delete("ml")
        await uow.commit()
    with pytest.raises(UnknownEnvironment) as missing:
        await payload(database, "ml")
    assert str(hidden.value) == str(missing.value)


@ON_SQLITE
async def test_task_whose_project_has_lost_its_worker_group_fails_with_the_reason(
    bench: Bench,
) -> None:
    workflow = await bench.publish({"a": {}})
    await restrict(bench.database, Restricted.WORKER_GROUP, "default", "other")
    async with bench.master():
        run = await bench.start(workflow)
        worker = await bench.worker("w")
        [verdict] = await worker.fetch(await worker.claim(1))
        assert not verdict.HasField("payload")
        assert await bench.ended(run.id) is WorkflowState.FAILED
    [task] = await bench.tasks(run.id)
    assert "restrict worker-group default --add default" in (task.reason or "")
