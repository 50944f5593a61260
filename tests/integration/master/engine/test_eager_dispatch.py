"""Tasks that come with the answer to a report: stored, granted once more, and never lost."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

import pytest

from shoal.coordination import TaskClaim, TaskQueue
from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import TaskEnded
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.master.dispatch import rpc
from shoal.master.dispatch.revocation import declare_lost
from shoal.master.engine.engine import Engine
from shoal.master.services.sweeper import Sweeper
from shoal.proto import shoal_pb2 as pb
from shoal.sql import Database
from tests.integration.coordination.conftest import connect
from tests.integration.master.conftest import Bench
from tests.integration.master.contexts import context_of
from tests.integration.master.manual_worker import HandWorker
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S
from tests.unit.core.decide.driving import START, spec

CHAIN = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}}
FAN = {"a": {}, **{f"b{n}": {"depends_on": ["a"]} for n in range(5)}}


async def holding_first(bench: Bench, name: str = "w") -> tuple[HandWorker, TaskClaim]:
    """A worker that holds the first task of an instance, granted."""
    worker = await bench.worker(name)
    (claim,) = await worker.claim()
    await worker.fetch([claim])
    return worker, claim


async def states(bench: Bench, instance_id: int) -> dict[str, str]:
    return {task.task: task.state.value for task in await bench.tasks(instance_id)}


async def test_chain_runs_without_the_queue(bench: Bench) -> None:
    workflow = await bench.publish(CHAIN)
    async with bench.master():
        instance = await bench.start(workflow)
        worker, claim = await holding_first(bench)
        for task in ("b", "c"):
            (grant,) = await worker.report_and_take(claim, room=1)
            assert grant.behind == claim.entry.task_instance_id
            assert grant.payload.task == task
            stored = {each.task: each for each in await bench.tasks(instance.id)}[task]
            assert (stored.state, stored.worker) == (TaskState.CLAIMED, "w")
            assert stored.queued_at is not None
            assert await worker.queue.depth("default") == 0
            (claim,) = await worker.transfer(claim, [grant])
        assert await worker.report_and_take(claim, room=1) == []
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    assert {t.attempt for t in await bench.tasks(instance.id, all_attempts=True)} == {1}


async def test_the_rest_goes_into_the_queue(bench: Bench) -> None:
    workflow = await bench.publish(FAN)
    async with bench.master():
        instance = await bench.start(workflow)
        worker, claim = await holding_first(bench)
        grants = await worker.report_and_take(claim, room=2)
        assert [grant.payload.task for grant in grants] == ["b0", "b1"]
        claims = await worker.transfer(claim, grants)
        others = await (await bench.worker("other")).claim(5)
        assert len(others) == 3
        for each in claims:
            assert await worker.report(each, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
        assert (await states(bench, instance.id))["b2"] == "QUEUED"


async def test_worker_without_room_gets_nothing(bench: Bench) -> None:
    workflow = await bench.publish(CHAIN)
    async with bench.master():
        await bench.start(workflow)
        worker, claim = await holding_first(bench)
        assert await worker.report(claim, pb.SUCCEEDED) == pb.ReportVerdict.COMMITTED
        (entry,) = [each.entry for each in await worker.claim()]
        # Nor does it overtake what waits.
        await worker.fetch([TaskClaim(entry, "w", 0, 1)])
        before = pb.Place(workflow_instance_id=entry.workflow_instance_id)
        assert await worker.report_and_take(TaskClaim(entry, "w", 0, 1), 1, before=before) == []


async def test_lost_answer_is_given_again_by_the_owner_of_the_partition(bench: Bench) -> None:
    workflow = await bench.publish(FAN)
    async with bench.master() as first:
        instance = await bench.start(workflow)
        worker, claim = await holding_first(bench)
        grants = await worker.report_and_take(claim, room=2)
        assert await worker.report_and_take(claim, room=0) == grants
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        async with bench.master():
            again = await worker.report_and_take(claim, room=5)
            assert [each.attempt for each in again] == [each.attempt for each in grants]
            one, two = await worker.transfer(claim, again)
            assert await worker.report(one, pb.STARTED) == pb.ReportVerdict.COMMITTED
            (left,) = await worker.report_and_take(claim, room=0)  # the other has begun
            assert left.attempt.task_instance_id == two.entry.task_instance_id
            other = await bench.worker("other")
            assert await other.report(claim, pb.SUCCEEDED) == pb.ReportVerdict.SUPERSEDED
    assert {t.attempt for t in await bench.tasks(instance.id, all_attempts=True)} == {1}


async def test_report_that_cannot_be_answered_holds_up_no_other_of_the_same_call(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = await bench.publish(CHAIN)
    async with bench.master():
        bad, good = await bench.start(workflow, "bad"), await bench.start(workflow, "good")
        worker = await bench.worker("w")
        claims = {each.entry.workflow_instance_id: each for each in await worker.claim(2)}
        await worker.fetch(list(claims.values()))

        def place(run: Run, attempt: Attempt) -> pb.Place:
            if run.id == bad.id:
                raise ValueError("junk that nobody foresaw")
            return place_of(run, attempt)

        place_of = rpc._place
        with monkeypatch.context() as patch:
            patch.setattr(rpc, "_place", place)
            verdicts, grants = await worker.report_together([claims[bad.id], claims[good.id]], 2)
        assert verdicts == [pb.ReportVerdict.RETRY, pb.ReportVerdict.COMMITTED]
        assert [grant.attempt.workflow_instance_id for grant in grants] == [good.id]
        # Nothing is lost: what is held behind the bad one is granted as soon as that is possible.
        assert (await states(bench, bad.id))["b"] == "CLAIMED"
        (granted,) = await worker.report_and_take(claims[bad.id], room=0)
        assert granted.attempt.workflow_instance_id == bad.id


async def test_what_was_dispatched_eagerly_dies_with_its_worker(
    bench: Bench, zk_chroot: str
) -> None:
    workflow = await bench.publish(CHAIN)
    async with bench.master(sweep_interval_s=0.02):
        instance = await bench.start(workflow)
        async with connect(zk_chroot, name="dying") as session:
            worker = await bench.worker("dying", session)
            (claim,) = await worker.claim()
            await worker.fetch([claim])
            (grant,) = await worker.report_and_take(claim, room=1)
        async with asyncio.timeout(DEADLINE_S):
            while (await states(bench, instance.id))["b"] == "CLAIMED":
                await asyncio.sleep(0.01)
        survivor = await bench.worker("survivor")
        await survivor.work(2)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    lost = [
        t for t in await bench.tasks(instance.id, all_attempts=True) if t.state is TaskState.LOST
    ]
    assert [t.id for t in lost] == [grant.attempt.task_instance_id]


async def test_payload_that_cannot_be_made_is_left_to_fetching(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"depends_on": ["a"], "params": {"script": "true", "interpreter": "$[nonsense"}}
    workflow = await bench.publish({"a": {}, "b": wrong, "c": {"depends_on": ["a"]}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker, claim = await holding_first(bench)
        monkeypatch.setattr(rpc, "_MOST_GRANTED", 0)
        grants = await worker.report_and_take(claim, room=2)
        assert [each.HasField("payload") for each in grants] == [False, False]
        b, c = await worker.transfer(claim, grants)
        refused, granted = await worker.fetch([b, c])
        assert refused.refusal.kind == pb.Refusal.SUPERSEDED
        assert granted.payload.task == "c"
        assert (await states(bench, instance.id))["b"] == "FAILED"


async def test_pause_lets_what_was_dispatched_eagerly_run(bench: Bench) -> None:
    workflow = await bench.publish(CHAIN)
    async with bench.master():
        instance = await bench.start(workflow)
        worker, claim = await holding_first(bench)
        (grant,) = await worker.report_and_take(claim, room=1)
        await bench.command(CommandType.PAUSE, workflow, "pause", instance)
        (claim,) = await worker.transfer(claim, [grant])
        assert await worker.report_and_take(claim, room=1) == []
        assert (await states(bench, instance.id))["c"] == "PAUSED"


# -- the sweeper ----------------------------------------------------------------------------------


def transferred(worker: str = "w") -> Run:
    """A run whose task b (2) was dispatched eagerly to ``worker`` behind a (1)."""
    a = Attempt("a", 1, TaskState.SUCCEEDED, id=1, worker="w")
    b = Attempt("b", 1, TaskState.CLAIMED, id=2, worker=worker, queued_at=START)
    c = Attempt("c", 1, id=3)
    attempts = {each.task: each for each in (a, b, c)}
    return Run(7, WorkflowPlan.of(spec(CHAIN)), WorkflowState.RUNNING, 0, attempts, START, START)


class Claims:
    """Claims that change between two reads; keeps what was read."""

    def __init__(self, *standing: set[int]) -> None:
        self.standing = list(standing)
        self.asked: list[set[int]] = []

    async def contains(self, _entries: Collection[object]) -> set[object]:
        return set()

    async def claimed(self, task_instance_ids: Collection[int]) -> set[int]:
        self.asked.append(set(task_instance_ids))
        found = self.standing.pop(0) if len(self.standing) > 1 else self.standing[0]
        return found & set(task_instance_ids)

    async def page(self, after: Any, _most: int) -> tuple[list[object], Any]:
        return [], after


async def lost_by(run: Run, claims: Claims) -> list[int]:
    """Sweep once; return which attempts were declared lost."""
    posted: list[TaskEnded] = []
    engine = cast("Engine", _Held(run, posted.append))

    def revoke(unclaimed: Iterable[tuple[Run, Attempt]]) -> None:
        for run, attempt in unclaimed:
            declare_lost(engine, utc_now, run, attempt, "no worker has it")

    context = context_of(cast("Database", None), engine)
    sweeper = Sweeper(context, cast("TaskQueue", claims), revoke)
    await sweeper.sweep()
    assert all(event.signal is TaskSignal.LOSE for event in posted)
    return [event.task_instance_id for event in posted]


class _Held:
    """As much of an engine as a sweep uses."""

    def __init__(self, run: Run, take: Callable[[TaskEnded], None]) -> None:
        self.runs, self._take = {run.id: run}, take
        self.epochs: dict[int, int] = {}
        self.asked: set[int] = set()

    def post(self, _partition: int, _instance_id: int, event: TaskEnded) -> None:
        self._take(event)


async def test_sweeper_spares_what_the_claim_before_stands_for() -> None:
    assert await lost_by(transferred(), Claims({1})) == []
    assert await lost_by(transferred(), Claims({2})) == []
    assert await lost_by(transferred(), Claims(set())) == [2]
    assert await lost_by(transferred("another"), Claims({1})) == [2]  # that one is not its worker's


async def test_claim_that_is_transferred_between_two_looks_is_found() -> None:
    """It is old claim first, new claim then; each of three reads sees one state."""
    moved = Claims({1}, set(), {2})  # nothing of 2 yet; then the claim moves; then the last read
    assert await lost_by(transferred(), moved) == []
    assert moved.asked == [{2}, {1}, {2}]
