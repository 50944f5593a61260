"""The sweeper: stale entries vanish, valid ones never, a long queue is looked at in parts."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pytest

from shoal.coordination import QueueEntry, TaskQueue
from shoal.coordination.cluster import layout
from shoal.coordination.queue.survey import START as BEGIN
from shoal.core.runs.commands import CommandType
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.engine.actions import queue_entry
from shoal.master.engine.engine import Engine
from shoal.master.services import sweeper as sweep
from shoal.master.services.sweeper import Sweeper, SweepLimits
from shoal.proto import shoal_pb2 as pb
from tests.integration.master.conftest import Bench
from tests.integration.master.contexts import context_of
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S
from tests.unit.core.decide.driving import START, spec

LOOKS = 2  # of one sweep, for the claim of an attempt that a worker holds


async def gone(queue: TaskQueue, entries: Collection[QueueEntry]) -> None:
    """Return when none of ``entries`` is in the queue."""
    async with asyncio.timeout(DEADLINE_S):
        while await queue.contains(entries):
            await asyncio.sleep(0.02)


async def waiting(queue: TaskQueue, count: int) -> list[QueueEntry]:
    """Return the queue's entries as soon as there are ``count``."""
    async with asyncio.timeout(DEADLINE_S):
        while len(entries := (await queue.page(BEGIN, 1000))[0]) != count:
            await asyncio.sleep(0.02)
    return entries


async def births(bench: Bench, entries: Sequence[QueueEntry]) -> list[int]:
    """Return when each entry was created (a zxid): 0 if it is gone."""
    stats = [await bench.session.exists(entry.path) for entry in entries]
    return [stat.czxid if stat else 0 for stat in stats]


async def test_entries_of_an_ended_instance_vanish_and_valid_ones_stay(bench: Bench) -> None:
    workflow = await bench.publish({name: {} for name in "abc"})
    queue = TaskQueue(bench.session)
    async with bench.master():
        ended = await bench.start(workflow, "ended")
        stale = await waiting(queue, 3)
        await bench.command(CommandType.STOP, workflow, "stop", ended)
        assert await bench.ended(ended.id) is WorkflowState.STOPPED
        await gone(queue, stale)
        await bench.start(workflow, "goes on")
        valid = await waiting(queue, 3)
        born = await births(bench, valid)
        for _ in range(3):  # as if the master had died before it could withdraw them
            await queue.put(stale)
            await gone(queue, stale)
        assert await births(bench, valid) == born


async def test_entry_of_a_task_that_runs_vanishes(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}, "b": {}})
    queue = TaskQueue(bench.session)
    async with bench.master():
        await bench.start(workflow)
        worker = await bench.worker("w1")
        claims = await worker.claim(1)
        await worker.fetch(claims)
        running = claims[0].entry
        await queue.put([running])
        await gone(queue, [running])
        (other,) = await waiting(queue, 1)
        assert other.task_instance_id != running.task_instance_id
        assert await queue.claimed([running.task_instance_id]) == {running.task_instance_id}


async def test_entries_of_a_paused_instance_come_back_with_it(bench: Bench) -> None:
    workflow = await bench.publish({name: {} for name in "abc"})
    queue = TaskQueue(bench.session)
    async with bench.master(sweep_interval_s=0.02):
        instance = await bench.start(workflow)
        entries = await waiting(queue, 3)
        for number in range(5):
            await bench.command(CommandType.PAUSE, workflow, f"pause {number}", instance)
            await gone(queue, entries)
            await queue.put(entries)  # stale now, valid again with the next command
            await bench.command(CommandType.RESUME, workflow, f"resume {number}", instance)
            assert await waiting(queue, 3) == entries
        worker = await bench.worker("w1")
        await worker.work(3)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


def run_with_queued(number: int, tasks: int = 1) -> Run:
    """A run in partition 0, all of whose tasks are queued."""
    names = [f"t{index}" for index in range(tasks)]
    plan = WorkflowPlan.of(spec({name: {} for name in names}))
    attempts = {
        name: Attempt(name, 1, TaskState.QUEUED, id=number * 1000 + index, queued_at=START)
        for index, name in enumerate(names)
    }
    return Run(number, plan, WorkflowState.RUNNING, 0, attempts, START, START)


async def engine_of(bench: Bench, *runs: Run) -> Engine:
    """An engine that holds partition 0 and ``runs``."""
    engine = Engine(bench.database, lambda _: asyncio.sleep(0), utc_now)
    engine.epochs[0] = 1
    engine.runs.update({run.id: run for run in runs})
    await layout.prepare(bench.session, 8)
    return engine


async def test_entries_of_other_masters_are_left_alone(bench: Bench) -> None:
    engine = await engine_of(bench)
    queue = TaskQueue(bench.session)
    ours, theirs = QueueEntry("g", 2, 7, 2, 71, 0), QueueEntry("g", 2, 8, 2, 81, 5)
    await queue.put([ours, theirs])
    await Sweeper(context_of(bench.database, engine), queue, lambda _: None).sweep()
    assert await queue.contains([ours, theirs]) == {theirs}


async def test_task_that_was_returned_and_taken_again_meanwhile_is_not_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = await bench.publish({"a": {}})
    looks, taken_again = 0, asyncio.Event()
    look = TaskQueue.claimed

    async def claimed(queue: TaskQueue, ids: Collection[int]) -> set[int]:
        nonlocal looks
        found = await look(queue, ids)
        if claim.entry.task_instance_id not in ids:
            return found
        looks += 1
        if looks <= LOOKS:  # as seen between the two claims
            found.discard(claim.entry.task_instance_id)
        if looks == LOOKS:
            await worker.requeue(claim, payload)
            await worker.queue.requeue([claim])
            await worker.fetch(await worker.claim())
            taken_again.set()
        return found

    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        (claim,) = await worker.claim()
        payload = (await worker.fetch([claim]))[0].payload
        monkeypatch.setattr(TaskQueue, "claimed", claimed)
        async with asyncio.timeout(DEADLINE_S):
            await taken_again.wait()
        assert await worker.report(claim, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


async def test_entry_that_comes_back_while_claims_are_read_is_not_missing(bench: Bench) -> None:
    """A worker that returns an attempt moves its entry from the claims into the queue."""
    puts: list[QueueEntry] = []

    class Sought(TaskQueue):
        async def claimed(self, ids: Collection[int]) -> set[int]:
            await TaskQueue(bench.session).put([entry])
            return await super().claimed(ids)

        async def put(self, entries: Iterable[QueueEntry]) -> None:
            puts.extend(entries)

    run = run_with_queued(1)
    entry = queue_entry(run, run.attempts["t0"])
    engine = await engine_of(bench, run)
    await Sweeper(context_of(bench.database, engine), Sought(bench.session), lambda _: None).sweep()
    assert puts == []


async def test_long_queue_is_looked_at_in_parts(bench: Bench) -> None:
    limits = SweepLimits(first_runs=2, runs=5, entries=5)
    runs = [run_with_queued(number) for number in range(1, 31)]
    entries = [queue_entry(run, attempt) for run in runs for attempt in run.attempts.values()]
    engine = await engine_of(bench, *runs)
    queue = TaskQueue(bench.session)
    sweeper = Sweeper(context_of(bench.database, engine), queue, lambda _: None, limits)

    found = []
    for _ in range(6):
        await sweeper.sweep()
        found.append(await queue.depth("default"))
    assert found == [7, 12, 17, 22, 27, 30]  # 2 + 5 with the first sweep, then 5 more each

    await queue.remove([entries[0], entries[29]])
    await sweeper.sweep()  # begins anew; the first are looked at every time
    assert await queue.contains(entries) == set(entries[:29])

    await queue.put([QueueEntry("default", 4, 99, 4, 99_000, 0)])
    for _ in range(8):  # 31 entries, five and more in each part
        await sweeper.sweep()
    assert await queue.contains(entries) == set(entries)
    assert await queue.depth("default") == 30


async def test_attempts_of_one_large_run_are_looked_at_together(bench: Bench) -> None:
    limits = SweepLimits(first_attempts=3, attempts=10)
    engine = await engine_of(bench, *(run_with_queued(number, 8) for number in range(1, 6)))
    queue = TaskQueue(bench.session)
    sweeper = Sweeper(context_of(bench.database, engine), queue, lambda _: None, limits)
    await sweeper.sweep()
    assert await queue.depth("default") == 24  # the first run; two more have ten attempts
    await sweeper.sweep()
    assert await queue.depth("default") == 40


async def test_nothing_is_dropped_while_stored_runs_are_looked_at(bench: Bench) -> None:
    run = run_with_queued(1)
    engine = await engine_of(bench, run)
    async with engine.stored([1, 2]) as runs:
        assert runs == {1: run}  # there is no second one
        dropping = asyncio.create_task(engine.drop([0]))
        for _ in range(10):
            await asyncio.sleep(0)
        assert 0 in engine.epochs
    await dropping
    assert 0 not in engine.epochs


async def test_run_is_looked_through_once_however_many_stale_entries_it_has(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_with_queued(1, 40)
    entries = [queue_entry(run, attempt) for attempt in run.attempts.values()]
    run.replace([replace(run.attempts["t0"], state=TaskState.RUNNING)])
    engine = await engine_of(bench, run)
    queue = TaskQueue(bench.session)
    await queue.put(entries)
    run.replace([replace(a, state=TaskState.PAUSED) for a in [*run.attempts.values()][1:39]])
    looks, real = 0, sweep._in_states

    def counted(one: Run, *states: TaskState) -> list[Attempt]:
        nonlocal looks
        looks += 1
        return real(one, *states)

    monkeypatch.setattr(sweep, "_in_states", counted)
    await Sweeper(context_of(bench.database, engine), queue, lambda _: None).sweep()
    assert await queue.contains(entries) == {entries[39]}
    assert looks <= 4  # queued ones and held ones that are missing, stale ones twice


async def test_entries_in_the_buckets_of_an_earlier_version_give_way(bench: Bench) -> None:
    """None is removed before its task stands in the right place, or is claimed."""
    run = run_with_queued(1, 3)
    right = [queue_entry(run, attempt) for attempt in run.attempts.values()]
    old = [replace(entry, lane=0) for entry in right]
    engine = await engine_of(bench, run)
    queue = TaskQueue(bench.session)
    await queue.put([right[2]])
    assert len(await queue.claim("default", 1, "w")) == 1
    await queue.put(old)
    sweeper = Sweeper(context_of(bench.database, engine), queue, lambda _: None)
    sweeper._find_missing = no_missing  # type: ignore[method-assign]
    await sweeper.sweep()
    assert await queue.contains([*old, *right]) == set(old[:2])
    await queue.put(right[:2])
    await sweeper.sweep()
    assert await queue.contains([*old, *right]) == set(right[:2])


async def no_missing() -> list[tuple[Run, Attempt]]:
    return []
