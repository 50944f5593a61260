"""Which environment a payload holds, as it is when the task is fetched, and what fails the task."""

import pytest

from shoal.core.runs.states import TaskState
from shoal.master.dispatch.environments import EnvironmentNotAllowed, UnknownEnvironment
from shoal.proto import shoal_pb2 as pb
from shoal.sql import Database
from tests.integration.master.conftest import Bench
from tests.integration.master.dispatch.payloads import maker_of, payload, put
from tests.integration.master.statements import noted_reads

pytestmark = pytest.mark.usefixtures("each_query_once")


async def test_payload_holds_the_environment_as_it_is_now(database: Database) -> None:
    await put(database, worker_groups=["default", "gpu"])
    await put(database, "own", python="")
    found = (await payload(database, "ml", parameters={"day": "monday"})).environment
    assert (found.name, found.version, found.python) == ("ml", 1, "/opt/ml")
    assert (dict(found.variables), found.setup) == ({"A": "${day}"}, "echo $[yyyy]")
    await put(database, setup="true")
    changed = (await payload(database, "ml")).environment
    assert (changed.version, changed.setup) == (2, "true")
    assert (await payload(database, "ml", environment="own")).environment.name == "own"


async def test_tasks_without_one_ask_the_database_for_nothing(database: Database) -> None:
    await put(database)
    maker = maker_of(database, 600.0)
    await payload(database, maker=maker)  # which knows now whose the worker groups are
    statements = await noted_reads(database)
    for made in (
        await payload(database, maker=maker),
        await payload(database, "ml", maker=maker, environment="none"),
        await payload(database, "ml", kind="SQL", maker=maker),
    ):
        assert not made.HasField("environment")
    assert statements == []
    await payload(database, "ml", maker=maker)
    assert len([one for one in statements if one.startswith("SELECT")]) == 1, statements


async def test_one_that_is_gone_by_now_is_told_of(database: Database) -> None:
    await put(database)
    with pytest.raises(UnknownEnvironment, match="no environment mll; did you mean 'ml'"):
        await payload(database, "mll")
    with pytest.raises(UnknownEnvironment, match="make it with `shoal environment set zz`"):
        await payload(database, environment="zz")


async def test_worker_group_counts_when_the_task_is_fetched(database: Database) -> None:
    await put(database, worker_groups=["gpu"])
    assert (await payload(database, "ml", worker_group="gpu")).environment.name == "ml"
    words = (
        "is for the worker groups gpu, the task is for default; .* "
        "`shoal environment set ml --group gpu --group default`"
    )
    with pytest.raises(EnvironmentNotAllowed, match=words):
        await payload(database, "ml")


async def test_master_fails_the_task_whose_environment_has_changed_since_and_runs_the_others(
    bench: Bench,
) -> None:
    await put(bench.database)
    await put(bench.database, "later")
    workflow = await bench.publish({"good": {}, "bad": {"environment": "later"}}, environment="ml")
    await put(bench.database, "later", worker_groups=["gpu"])
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        claims = await worker.claim(2)
        while len(claims) < 2:
            claims += await worker.claim(2 - len(claims))
        granted = {}
        for verdict in await worker.fetch(claims):
            if verdict.WhichOneof("verdict") == "payload":
                granted[verdict.payload.task] = verdict.payload
        assert granted.keys() == {"good"}
        assert granted["good"].environment.name == "ml"
        [claim] = [
            one for one in claims if one.entry.task_instance_id == granted["good"].task_instance_id
        ]
        await worker.report(claim, pb.SUCCEEDED, environment="ml@1")
        tasks = {task.task: task for task in await bench.tasks(instance.id)}
    assert (tasks["good"].state, tasks["good"].environment) == (TaskState.SUCCEEDED, "ml@1")
    assert (tasks["bad"].state, tasks["bad"].environment) == (TaskState.FAILED, None)
    assert "the environment later is for the worker groups gpu" in (tasks["bad"].reason or "")


async def test_report_of_an_endless_name_spoils_nothing(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        [claim] = await worker.claim(1)
        await worker.fetch([claim])
        assert await worker.report(claim, pb.SUCCEEDED, environment="x" * 5_000) == (
            pb.ReportVerdict.COMMITTED
        )
        [task] = await bench.tasks(instance.id)
    assert task.environment == "x" * 120
