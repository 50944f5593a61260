"""DEPENDENT tasks with real masters: they see every end, whichever master ended it or dies."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select

from shoal.core.runs.commands import CommandType
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.proto import shoal_pb2 as pb
from shoal.runtime import failpoints
from shoal.sql.repositories.runs.dependencies import Wait
from shoal.sql.schema.tables import dependency_wait
from tests.integration.master.conftest import Bench
from tests.integration.master.services.dependents import DAY, ON_SQLITE, reason, task_of, waiting
from tests.support.waiting import DEADLINE_S

ON_POSTGRESQL = pytest.mark.parametrize("bench", ["postgresql"], indirect=True)


async def upstream(bench: Bench, name: str = "up", tasks: tuple[str, ...] = ("a",)) -> int:
    return await bench.publish({task: {} for task in tasks}, name=name)


async def rows(bench: Bench) -> int:
    async with bench.database.unit_of_work(read_only=True) as uow:
        return len(await uow.connection.rows(select(dependency_wait)))


async def no_rows(bench: Bench) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while await rows(bench):
            await asyncio.sleep(0.01)


async def test_waits_for_the_run_of_the_same_day_and_says_which(bench: Bench) -> None:
    up = await upstream(bench)
    async with bench.master(scan_interval_s=30.0), bench.master(scan_interval_s=30.0):
        await bench.shared_by_two()
        down = await waiting(bench)
        await reason(bench, down, "no run for 2026-03-02 (today)")
        worker = await bench.worker("w")
        other_day = await bench.start(up, "other", logical_time=DAY + timedelta(days=1))
        await worker.work(1)
        assert await bench.ended(other_day.id) is WorkflowState.SUCCEEDED
        assert (await task_of(bench, down)).state is TaskState.RUNNING
        run = await bench.start(up, "same", logical_time=DAY + timedelta(hours=9))
        await worker.work(1)
        assert await bench.ended(down.id) is WorkflowState.SUCCEEDED
    (item,) = (await task_of(bench, down)).detail["items"]
    (interval,) = item["intervals"]
    assert interval["runs"] == [{"instance": run.id, "state": "SUCCEEDED"}]
    upstream_ended = (await bench.instance(run.id)).finished_at
    downstream_ended = (await bench.instance(down.id)).finished_at
    assert upstream_ended is not None
    assert downstream_ended is not None
    assert upstream_ended <= downstream_ended


@ON_SQLITE
async def test_run_that_ended_before_is_found_at_once(bench: Bench) -> None:
    up = await upstream(bench)
    async with bench.master(scan_interval_s=30.0):
        await bench.start(up, logical_time=DAY)
        await (await bench.worker("w")).work(1)
        down = await waiting(bench)
        assert await bench.ended(down.id) is WorkflowState.SUCCEEDED


@ON_SQLITE
async def test_failed_run_fails_and_its_rerun_saves_who_comes_later(bench: Bench) -> None:
    up = await upstream(bench)
    async with bench.master(scan_interval_s=30.0):
        down = await waiting(bench)
        run = await bench.start(up, "up", logical_time=DAY)
        worker = await bench.worker("w")
        (claim,) = await worker.claim()
        await worker.fetch([claim])
        await reason(bench, down, f"instance {run.id} is RUNNING")
        await worker.report(claim, pb.FAILED)
        await worker.queue.release([claim])
        assert await bench.ended(down.id) is WorkflowState.FAILED
        await reason(bench, down, f"instance {run.id} is FAILED")
        rerun = await bench.command(CommandType.RERUN, up, "rerun", run)
        assert rerun.result_instance_id != run.id
        await worker.work(1)
        again = await waiting(bench, "again")
        assert await bench.ended(again.id) is WorkflowState.SUCCEEDED


@ON_POSTGRESQL
async def test_task_that_succeeds_in_a_running_instance_is_enough(bench: Bench) -> None:
    up = await upstream(bench, tasks=("a", "b"))
    async with bench.master(scan_interval_s=30.0), bench.master(scan_interval_s=30.0):
        await bench.shared_by_two()
        down = await waiting(bench, workflow="up", task="b", date="today")
        await reason(bench, down, "task b of default/up: no run")
        run = await bench.start(up, "up", logical_time=DAY)
        worker = await bench.worker("w")
        claims = {claim.entry.task_instance_id: claim for claim in await worker.claim(1)}
        claims |= {claim.entry.task_instance_id: claim for claim in await worker.claim(1)}
        ids = {task.task: task.id for task in await bench.tasks(run.id)}
        await worker.fetch(list(claims.values()))
        await worker.report(claims[ids["b"]], pb.SUCCEEDED)
        assert await bench.ended(down.id) is WorkflowState.SUCCEEDED
        assert (await bench.instance(run.id)).state is WorkflowState.RUNNING


@pytest.mark.parametrize(
    ("if_missing", "task", "instance"),
    [
        ("fail", TaskState.FAILED, WorkflowState.FAILED),
        ("skip", TaskState.SKIPPED, WorkflowState.SUCCEEDED),
    ],
)
@ON_SQLITE
async def test_missing_run_is_judged_at_once(
    bench: Bench, if_missing: str, task: TaskState, instance: WorkflowState
) -> None:
    await upstream(bench)
    async with bench.master():
        down = await waiting(bench, workflow="up", date="last2Days", if_missing=if_missing)
        assert await bench.ended(down.id) is instance
        found = await task_of(bench, down)
        assert found.state is task
        assert found.reason == "default/up: no run for 2026-02-28 (last2Days); and 1 more"


@ON_SQLITE
async def test_workflow_that_is_published_later_is_waited_for(bench: Bench) -> None:
    async with bench.master(scan_interval_s=0.2):
        down = await waiting(bench)
        await reason(bench, down, "the project default has no such workflow")
        up = await upstream(bench)
        await bench.start(up, "up", logical_time=DAY)
        await (await bench.worker("w")).work(1)
        assert await bench.ended(down.id) is WorkflowState.SUCCEEDED


@ON_SQLITE
async def test_workflow_may_wait_for_its_own_run_of_the_day_before(bench: Bench) -> None:
    when = {"workflow": "self", "date": "last1Days", "if_missing": "skip"}
    task = {"type": "DEPENDENT", "params": {"when": when}}
    own = await bench.publish({"d": task, "a": {"depends_on": ["d"]}}, name="self")
    async with bench.master(scan_interval_s=30.0):
        # The first of all has none before: if_missing decides, and the branch is not taken.
        first = await bench.start(own, "first", logical_time=DAY)
        assert await bench.ended(first.id) is WorkflowState.SUCCEEDED
        assert {t.state for t in await bench.tasks(first.id)} == {TaskState.SKIPPED}
        second = await bench.start(own, "second", logical_time=DAY + timedelta(days=1))
        await (await bench.worker("w")).work(1)
        assert await bench.ended(second.id) is WorkflowState.SUCCEEDED


@ON_POSTGRESQL
async def test_who_waits_survives_the_death_of_its_master(bench: Bench) -> None:
    up = await upstream(bench)
    async with bench.master() as first, bench.master() as second:
        await bench.shared_by_two()
        downs = [await waiting(bench, f"k{n}") for n in range(4)]
        for down in downs:
            await reason(bench, down, "no run")
        first.cancel()
        await asyncio.wait([first])
        await bench.start(up, "up", logical_time=DAY)
        await (await bench.worker("w")).work(1)
        assert [await bench.ended(d.id) for d in downs] == [WorkflowState.SUCCEEDED] * 4
        assert not second.done()


async def test_nothing_is_left_of_those_who_wait_no_more(bench: Bench) -> None:
    await upstream(bench)
    async with bench.master(scan_interval_s=0.2):
        stopped = await waiting(bench, "stopped")
        paused = await waiting(bench, "paused")
        for one in (stopped, paused):
            await reason(bench, one, "no run")
        assert await rows(bench) == 2
        await bench.command(CommandType.STOP, stopped.workflow_id, "s", stopped)
        await bench.command(CommandType.PAUSE, paused.workflow_id, "p", paused)
        await no_rows(bench)
        await bench.command(CommandType.RESUME, paused.workflow_id, "r", paused)
        async with asyncio.timeout(DEADLINE_S):
            while await rows(bench) != 1:
                await asyncio.sleep(0.01)


@ON_SQLITE
async def test_rows_of_a_master_that_died_are_swept(bench: Bench) -> None:
    up = await upstream(bench)
    async with bench.master():
        down = await waiting(bench)
        await reason(bench, down, "no run")
        await bench.start(up, "up", logical_time=DAY)
        await (await bench.worker("w")).work(1)
        assert await bench.ended(down.id) is WorkflowState.SUCCEEDED
        await no_rows(bench)
    task = await task_of(bench, down)
    async with bench.database.unit_of_work() as uow:
        await uow.dependencies.register([Wait(task.id, up, down.id, down.partition)])
        await uow.commit()
    async with bench.master(scan_interval_s=0.05):
        await no_rows(bench)


@ON_SQLITE
@pytest.mark.parametrize("point", ["watch.before_look", "watch.before_post"])
async def test_looks_may_fail_every_second_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(failpoints, "_armed_points", failpoints.parse(f"{point}=raise%2"))
    up = await upstream(bench)
    async with bench.master(scan_interval_s=0.1):
        downs = [await waiting(bench, f"k{n}") for n in range(3)]
        for down in downs:
            await reason(bench, down, "no run")
        await bench.start(up, "up", logical_time=DAY)
        await (await bench.worker("w")).work(1)
        assert [await bench.ended(down.id) for down in downs] == [WorkflowState.SUCCEEDED] * 3
    assert failpoints._armed_points[point].hits >= 2
