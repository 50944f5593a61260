"""Runs that must not overlap, and masters that hold no more than they may: two masters at work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import text

from shoal.core.runs.commands import CommandState, CommandType, Parent
from shoal.core.runs.events import StopRequested, TaskClaimed
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskSignal, WorkflowState
from shoal.sql import Database
from tests.integration.master.services.admission_harness import PARTITIONS, Harness, Master
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S, eventually

QUEUED, RUNNING = WorkflowState.QUEUED, WorkflowState.RUNNING
STOPPED, SUCCEEDED = WorkflowState.STOPPED, WorkflowState.SUCCEEDED


async def opened(stack: AsyncExitStack, url: str) -> Harness:
    """A database without masters."""
    database = await stack.enter_async_context(Database(url))
    async with database.unit_of_work() as uow:
        await uow.partitions.ensure(PARTITIONS)
        await uow.commit()
    return Harness(database)


@pytest.fixture
async def harness(sqlite_url: str) -> AsyncIterator[Harness]:
    """On SQLite."""
    async with AsyncExitStack() as stack:
        yield await opened(stack, sqlite_url)


@pytest.fixture
async def postgresql_harness(migrated_postgresql_url: str) -> AsyncIterator[Harness]:
    """With transactions that really run at the same time."""
    async with AsyncExitStack() as stack:
        yield await opened(stack, migrated_postgresql_url)


@pytest.fixture(params=["harness", "postgresql_harness"])
def any_harness(request: pytest.FixtureRequest) -> Harness:
    """On each database."""
    found: Harness = request.getfixturevalue(request.param)
    return found


async def claim(harness: Harness, instance: Instance) -> None:
    """Let a worker take the only task, so that a stop has to wait for it."""
    await harness.is_in(instance, RUNNING)
    async with harness.database.unit_of_work(read_only=True) as uow:
        (task,) = await uow.tasks.of_instance(instance.id)
    engine = harness.masters[instance.partition].engine
    claimed = TaskClaimed(task.id, "w", utc_now())
    await engine.submit(instance.partition, instance.id, claimed)


# -- policies -----------------------------------------------------------------------------------


async def test_queued_runs_of_all_masters_start_one_after_the_other(any_harness: Harness) -> None:
    harness = any_harness
    workflow = await harness.publish(overlap="queue")
    async with harness.working():
        runs = [await harness.start(workflow) for _ in range(4)]
        assert {run.partition for run in runs} == {0, 1}
        for position, run in enumerate(runs):
            await harness.is_in(run, RUNNING)
            await harness.stays(QUEUED, *runs[position + 1 :])
            await harness.end(run)
    admitted = [(await harness.instance(run.id)).admitted_at for run in runs]
    assert None not in admitted
    assert admitted == sorted(a for a in admitted if a)


async def test_paused_run_keeps_its_place_and_a_failed_one_gives_it_free(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue")
    async with harness.working():
        first, second = [await harness.start(workflow) for _ in range(2)]
        await harness.is_in(first, RUNNING)
        assert (await harness.request(CommandType.PAUSE, first)).state is CommandState.DONE
        await harness.is_in(first, WorkflowState.PAUSED)
        await harness.stays(QUEUED, second)
        await harness.request(CommandType.RESUME, first)
        await harness.end(first, TaskSignal.FAIL)
        await harness.is_in(second, RUNNING)
        # Nobody holds back what has started once.
        assert (await harness.request(CommandType.RECOVER, first)).state is CommandState.DONE
        await harness.is_in(first, RUNNING)


async def test_run_that_waits_can_be_stopped_and_not_be_paused(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue")
    async with harness.working():
        first, second, third = [await harness.start(workflow) for _ in range(3)]
        assert (await harness.request(CommandType.PAUSE, second)).state is CommandState.REFUSED
        assert (await harness.request(CommandType.STOP, second)).state is CommandState.DONE
        await harness.is_in(second, STOPPED)
        await harness.stays(QUEUED, third)
        await harness.end(first)
        await harness.is_in(third, RUNNING)


async def test_full_queue_and_skip_new_refuse_with_the_reason(harness: Harness) -> None:
    queue = await harness.publish("queue", overlap="queue", max_queued=1)
    skip = await harness.publish("skip", overlap="skip_new", max_active=2)
    async with harness.working():
        for workflow, says in ((queue, "max_queued"), (skip, "skip_new")):
            sent = await harness.send(*[harness.new_start(workflow, partition=0) for _ in range(3)])
            outcomes = [await harness.outcome(command) for command in sent]
            assert [o.state for o in outcomes] == [
                CommandState.DONE,
                CommandState.DONE,
                CommandState.REFUSED,
            ]
            assert says in (outcomes[2].reason or "")


async def test_queue_by_priority_starts_the_most_urgent_first(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue_by_priority")
    async with harness.working():
        first = await harness.start(workflow)
        low, high = [await harness.start(workflow, priority=p) for p in (4, 0)]
        await harness.end(first)
        await harness.is_in(high, RUNNING)
        await harness.stays(QUEUED, low)


async def test_queue_latest_stops_runs_that_waited_before(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue_latest")
    async with harness.working():
        first, second, third = [await harness.start(workflow) for _ in range(3)]
        superseded = await harness.is_in(second, STOPPED)
        assert superseded.reason == f"stopped: superseded by instance {third.id}"
        assert superseded.started_at is None
        await harness.end(first)
        await harness.is_in(third, RUNNING)


async def test_superseded_run_never_starts_although_its_stop_is_late(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue_latest", max_active=2)
    async with harness.working():
        active = [await harness.start(workflow, partition=0) for _ in range(2)]
        second = await harness.start(workflow, partition=1)
        del harness.masters[1]  # hears no notification
        third = await harness.start(workflow, partition=0)
        for run in active:
            await harness.end(run)
        await harness.is_in(third, RUNNING)
        assert (await harness.instance(second.id)).admitted_at is None


async def test_replace_waits_until_the_old_run_has_really_ended(any_harness: Harness) -> None:
    harness = any_harness
    workflow = await harness.publish(overlap="replace")
    async with harness.working():
        old = await harness.start(workflow)
        await claim(harness, old)
        new = await harness.start(workflow)
        await harness.is_in(old, WorkflowState.STOPPING)
        await harness.stays(QUEUED, new)
        await harness.end(old, TaskSignal.KILL)
        await harness.is_in(new, RUNNING)
    stopped = await harness.instance(old.id)
    assert (stopped.state, stopped.reason) == (
        STOPPED,
        f"stopped: replaced by instance {new.id}",
    )


async def test_many_starts_in_one_batch_are_as_many_one_by_one(harness: Harness) -> None:
    workflow = await harness.publish(overlap="replace")
    sent = await harness.send(*[harness.new_start(workflow, partition=0) for _ in range(4)])
    async with harness.working():
        ids = [(await harness.outcome(command)).result_instance_id for command in sent]
        *older, newest = [await harness.instance(i) for i in ids if i]
        await harness.is_in(newest, RUNNING)
        assert {(await harness.is_in(run, STOPPED)).state for run in older} == {STOPPED}


async def test_backfills_neither_wait_nor_count(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue")
    async with harness.working():
        of_backfill = [await harness.start(workflow, backfill_id=1) for _ in range(2)]
        first, second = [await harness.start(workflow) for _ in range(2)]
        for run in (*of_backfill, first):
            await harness.is_in(run, RUNNING)
        await harness.end(of_backfill[0])
        await harness.stays(QUEUED, second)


async def test_regular_look_uses_the_room_of_a_new_version(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue")
    async with harness.working() as masters:
        runs = [await harness.start(workflow, partition=0) for _ in range(4)]
        await harness.is_in(runs[0], RUNNING)
        await harness.publish(overlap="queue", max_active=2)
        await masters[1].admission.admit_waiting()  # nothing of its own waits
        await harness.stays(QUEUED, *runs[1:])
        await masters[0].admission.admit_waiting()
        await harness.is_in(runs[1], RUNNING)
        await harness.stays(QUEUED, *runs[2:])
        await harness.publish(overlap="allow")
        await masters[0].admission.admit_waiting()
        for run in runs[2:]:
            await harness.is_in(run, RUNNING)


# -- nothing is lost, no run is admitted beyond the room ------------------------------------------


async def test_successor_starts_what_was_admitted_while_nobody_heard_it(
    any_harness: Harness,
) -> None:
    harness = any_harness
    workflow = await harness.publish(overlap="queue")
    async with harness.working():
        first = await harness.start(workflow, partition=0)
        second = await harness.start(workflow, partition=1)
        await harness.is_in(first, RUNNING)
        harness.deaf = True  # as if the master died between commit and notification
        await harness.end(first)
        assert (await harness.instance(second.id)).admitted_at is not None
        assert (await harness.instance(second.id)).state is QUEUED
        async with Master(harness, 1, epoch=2).working():
            await harness.is_in(second, RUNNING)
            await harness.stays(RUNNING, second)  # whatever the message that was left over says


async def test_run_that_waits_does_not_start_by_a_takeover(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue")
    async with harness.working():
        first = await harness.start(workflow, partition=0)
        second = await harness.start(workflow, partition=1)
        async with Master(harness, 1, epoch=2).working() as successor:
            # Decided after all that the takeover has brought.
            late = TaskClaimed(0, "w", utc_now())
            run = await successor.engine.submit(1, second.id, late)
            assert (run.state, run.admitted_at) == (QUEUED, None)
            await harness.end(first)
            await harness.is_in(second, RUNNING)


async def test_admission_is_told_once_however_often_it_is_looked_for(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue")
    async with harness.working() as masters:
        first, second = [await harness.start(workflow, partition=0) for _ in range(2)]
        harness.deaf = True
        await harness.end(first)
        for master in masters:
            await master.admission.admit_waiting()
        async with harness.database.unit_of_work(read_only=True) as uow:
            (sent,) = await uow.commands.requests([0], 10)
        assert (sent.type, sent.idempotency_key) == (CommandType.ADMIT, f"admit:{second.id}")


@pytest.mark.parametrize("overlap", ["queue", "queue_by_priority", "queue_latest", "replace"])
async def test_two_masters_never_admit_too_many_and_never_block_each_other(
    any_harness: Harness, overlap: str
) -> None:
    """Ends, starts and stops of two workflows meet in every order."""
    harness = any_harness
    workflows = [await harness.publish(name, overlap=overlap, max_active=2) for name in "uv"]
    most: dict[int, int] = dict.fromkeys(workflows, 0)
    done = asyncio.Event()

    async def count() -> None:
        """Watch how many are active: all that a reader may ever see, in one snapshot."""
        while not done.is_set():
            async with harness.database.unit_of_work(read_only=True) as uow:
                open_runs = [r for p in range(PARTITIONS) for r in await uow.instances.open_runs(p)]
                ids = {r.id: (await uow.instances.get(r.id)).workflow_id for r in open_runs}
            for workflow in workflows:
                active = [
                    r
                    for r in open_runs
                    if ids[r.id] == workflow and (r.admitted_at or r.state is not QUEUED)
                ]
                most[workflow] = max(most[workflow], len(active))
            await asyncio.sleep(0)

    async def finish(instance_id: int) -> None:
        """End it once it runs; every fourth is stopped, often while it waits."""
        instance = await harness.instance(instance_id)
        if instance_id % 4 == 0:
            await harness.request(CommandType.STOP, instance)
        while instance.state not in (STOPPED, SUCCEEDED):
            if instance.state is RUNNING:
                await harness.report(instance)
            await asyncio.sleep(0.005)
            instance = await harness.instance(instance_id)

    async with harness.working():
        counting = asyncio.create_task(count())
        waves = []
        for _ in range(4):
            new = [harness.new_start(w) for w in workflows for _ in range(2)]
            waves += await asyncio.gather(*(harness.send(one) for one in new))
        ids = [
            found.result_instance_id
            for (command,) in waves
            if (found := await harness.outcome(command)).result_instance_id
        ]
        assert len(ids) == 16
        await asyncio.gather(*(finish(instance_id) for instance_id in ids))
        done.set()
        await counting
    assert all(1 <= count <= 2 for count in most.values()), most
    async with harness.database.unit_of_work(read_only=True) as uow:
        for partition in range(PARTITIONS):
            assert await uow.instances.open_runs(partition) == []


async def test_workflow_is_locked_before_an_end_is_written(postgresql_harness: Harness) -> None:
    """The other way round, who admits a run and who stops it would wait for each other."""
    harness = postgresql_harness
    workflow = await harness.publish(overlap="queue")
    async with harness.working() as masters:
        await harness.start(workflow, partition=0)
        second = await harness.start(workflow, partition=1)
        async with harness.database.unit_of_work() as other:
            await other.admission.lock({workflow: 1})
            stop = masters[1].engine.submit(1, second.id, StopRequested(utc_now()))
            stopping = asyncio.create_task(stop)
            while not await somebody_waits_for_a_lock(harness.database):
                await asyncio.sleep(0.005)
            admitting = other.admission.admit([second.id], utc_now())
            assert await asyncio.wait_for(admitting, DEADLINE_S / 4) == {second.id: 1}
            await other.commit()
        assert (await stopping).state is STOPPED


async def somebody_waits_for_a_lock(database: Database) -> bool:
    query = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with database.unit_of_work(read_only=True) as uow:
        return bool(await uow.connection.scalar(text(query)))


# -- how much a master holds ----------------------------------------------------------------------


async def test_full_master_starts_nothing_until_an_instance_ends(harness: Harness) -> None:
    workflow = await harness.publish()
    sent = [harness.new_start(workflow, partition=0) for _ in range(5)]
    async with harness.working(max_open=2) as masters:
        commands = await harness.send(*sent)
        for position, command in enumerate(commands):
            found = await harness.outcome(command)
            assert found.result_instance_id is not None
            assert len(masters[0].engine.runs) <= 2
            if position >= 1:  # the oldest of those that are left comes next, not before
                later = [await harness.command(c.id) for c in commands[position + 1 :]]
                assert {c.state for c in later} <= {CommandState.PENDING}
                await harness.end(await harness.instance(found.result_instance_id))


async def test_requests_do_not_stand_in_line_behind_starts(harness: Harness) -> None:
    workflow = await harness.publish()
    async with harness.working(max_open=1) as masters:
        running = await harness.start(workflow, partition=0)
        held_back = await harness.send(
            *[harness.new_start(workflow, partition=0) for _ in range(600)]
        )
        assert (await harness.request(CommandType.PAUSE, running)).state is CommandState.DONE
        await eventually(lambda: running.id not in masters[0].engine.runs)
        harness.notify([0])  # no engine holds a paused instance: there is room for the next one
        assert (await harness.outcome(held_back[0])).state is CommandState.DONE
        assert (await harness.command(held_back[1].id)).state is CommandState.PENDING


async def test_sub_workflows_are_not_held_back(harness: Harness) -> None:
    workflow = await harness.publish()
    async with harness.working(max_open=1):
        outer = await harness.start(workflow, partition=0)
        (waiting,) = await harness.send(harness.new_start(workflow, partition=0))
        parent = Parent(instance_id=outer.id, task_instance_id=1, partition=0)
        inner = await harness.start(workflow, partition=0, parent=parent)
        await harness.is_in(inner, RUNNING)
        assert (await harness.command(waiting.id)).state is CommandState.PENDING


# -- quarantine ---------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", ["queue", "skip_new"])
async def test_quarantined_run_holds_no_place(any_harness: Harness, overlap: str) -> None:
    """It waits in line again if it had not begun; a run that had begun takes its place back."""
    harness = any_harness
    workflow = await harness.publish(overlap=overlap, max_active=1)
    async with harness.working() as masters:
        first = await harness.start(workflow)
        await harness.is_in(first, RUNNING)
        quarantined = [await harness.start(workflow)] if overlap == "queue" else []
        engine = masters[first.partition].engine
        await eventually(lambda: first.id in engine.runs)  # adopted after the commit
        engine.quarantine_run(engine.runs[first.id], RuntimeError("beyond us"))
        await eventually(lambda: masters[first.partition].admission.has_work)
        await masters[first.partition].admission.poll(False)
        second = quarantined[0] if quarantined else await harness.start(workflow)
        await harness.is_in(second, RUNNING)
        repaired = await harness.request(CommandType.RECOVER, first)
        assert repaired.state is CommandState.DONE, repaired.reason
        (command,) = await harness.send(harness.new_start(workflow))
        found = await harness.outcome(command)
        if overlap == "skip_new":
            assert f"(run {first.id})" in (found.reason or "")
            return
        third = await harness.instance(found.result_instance_id or 0)
        await harness.end(second)
        await harness.stays(QUEUED, third)
        await harness.end(first)
        await harness.is_in(third, RUNNING)


async def test_quarantined_run_that_has_not_begun_waits_in_line_again(harness: Harness) -> None:
    workflow = await harness.publish(overlap="queue")
    async with harness.working() as masters:
        first, second, third = [await harness.start(workflow) for _ in range(3)]
        home = masters[second.partition]
        await eventually(lambda: second.id in home.engine.runs)
        run = home.engine.runs[second.id]
        home.engine.quarantine_run(run, RuntimeError("beyond us"))
        async with harness.database.unit_of_work() as uow:  # as if it had been quarantined there
            await uow.admission.admit([second.id], utc_now())
            await uow.commit()
        await eventually(lambda: home.admission.has_work)
        await home.admission.poll(False)
        assert (await harness.instance(second.id)).admitted_at is None
        await harness.end(first)
        await harness.is_in(third, RUNNING)
        await harness.request(CommandType.RECOVER, second)
        await harness.stays(QUEUED, second)
        await harness.end(third)
        await harness.is_in(second, RUNNING)


# -- shares of projects -------------------------------------------------------------------------


async def test_other_project_starts_at_a_master_that_one_project_has_filled(
    any_harness: Harness,
) -> None:
    harness = any_harness
    flood = await harness.publish(project="flood")
    other = await harness.publish(project="other")
    async with harness.working(max_open=4) as masters:
        sent = await harness.send(*[harness.new_start(flood, partition=0) for _ in range(40)])
        for command in sent[:4]:
            assert (await harness.outcome(command)).state is CommandState.DONE
        run = await harness.start(other, partition=0)
        await harness.is_in(run, RUNNING)
        # One project is below its share of half the room; the other one is not.
        again = await harness.send(*[harness.new_start(other, partition=0) for _ in range(3)])
        assert (await harness.outcome(again[0])).state is CommandState.DONE
        await eventually(lambda: len(masters[0].engine.runs) == 6)  # held after the commit
        await harness.stays(RUNNING, run)
        states = [(await harness.command(one.id)).state for one in (*again[1:], *sent[4:])]
        assert set(states) == {CommandState.PENDING}
        # What has waited starts as runs end, the projects in turn.
        await harness.end(run)
        assert (await harness.outcome(again[1])).state is CommandState.DONE


async def test_projects_take_turns_in_a_backlog(any_harness: Harness) -> None:
    """The one start of a project does not wait for those that another one has sent before it."""
    harness = any_harness
    flood = await harness.publish(project="flood")
    other = await harness.publish(project="other")
    sent = await harness.send(*[harness.new_start(flood, partition=0) for _ in range(2_000)])
    (last,) = await harness.send(harness.new_start(other, partition=0))
    async with harness.working():
        harness.notify([0])
        found = await harness.outcome(last)
        assert found.result_instance_id is not None
        assert (await harness.command(sent[-1].id)).state is CommandState.PENDING
        assert found.result_instance_id < 1_000


async def test_runs_that_only_wait_take_no_room(harness: Harness) -> None:
    """For a worker group without workers, a concurrency group, or other runs."""
    tasks = [{"name": "a", "type": "SHELL", "params": {"script": "true"}}]
    async with harness.database.unit_of_work() as uow:
        await uow.concurrency.put("default", "none", 0, "", utc_now())
        await uow.commit()
    alone = await harness.publish("alone", tasks=[{**tasks[0], "worker_group": "nobody"}])
    blocked = await harness.publish("blocked", tasks=[{**tasks[0], "concurrency_group": "none"}])
    queued = await harness.publish("queued", overlap="queue")
    async with harness.working(max_open=2, is_served=lambda group: group != "nobody") as masters:
        for workflow in (alone, blocked, queued):
            sent = [harness.new_start(workflow, partition=0) for _ in range(10)]
            for command in await harness.send(*sent):
                assert (await harness.outcome(command)).state is CommandState.DONE
        last = await harness.start(await harness.publish(), partition=0)
        await harness.is_in(last, RUNNING)
        await eventually(lambda: len(masters[0].engine.runs) == 31)  # held after the commit
        # One of the queued runs and the last one work: there is no room for more.
        more = harness.new_start(await harness.publish(), partition=0)
        (command,) = await harness.send(more)
        await harness.stays(RUNNING, last)
        assert (await harness.command(command.id)).state is CommandState.PENDING
        await harness.end(last)
        assert (await harness.outcome(command)).state is CommandState.DONE


async def test_all_runs_that_only_wait_start_at_once_however_many_there_are(
    harness: Harness,
) -> None:
    """The next regular scan is an hour away."""
    alone = await harness.publish(
        tasks=[{"name": "a", "type": "SHELL", "params": {"script": ""}, "worker_group": "nobody"}]
    )
    served = {"max_open": 3, "is_served": lambda group: group != "nobody", "scan_batch": 3}
    async with harness.working(**served):
        sent = [harness.new_start(alone, partition=0) for _ in range(12)]
        for command in await harness.send(*sent):
            assert (await harness.outcome(command)).state is CommandState.DONE
