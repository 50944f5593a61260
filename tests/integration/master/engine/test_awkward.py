"""What workers, tasks and requests may throw at a master without harm to anything else."""

import asyncio
import math
import time
from datetime import timedelta

from shoal.coordination import Members, TaskClaim, TaskQueue
from shoal.coordination.cluster import layout
from shoal.core.runs.commands import CommandType
from shoal.core.runs.run import Attempt, Enqueue, Run, Withdraw, WorkflowPlan
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.engine.actions import Performer
from shoal.master.engine.engine import Engine
from shoal.master.engine.listeners import Listener, Listeners
from shoal.master.services.sweeper import Sweeper
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import call
from tests.integration.master.conftest import Bench
from tests.integration.master.contexts import context_of
from tests.integration.master.kill_counter import kill_counter
from tests.integration.master.manual_worker import HandWorker
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S
from tests.unit.core.decide.driving import START, spec


async def all_claimed(worker: HandWorker, count: int) -> list[pb.AttemptRef]:
    """Claim and fetch ``count`` tasks of one instance."""
    claims: list[TaskClaim] = []
    while len(claims) < count:
        claims += await worker.claim(count - len(claims))
    await worker.fetch(claims)
    return [
        pb.AttemptRef(
            workflow_instance_id=c.entry.workflow_instance_id,
            task_instance_id=c.entry.task_instance_id,
            partition=c.entry.partition,
        )
        for c in claims
    ]


async def test_kills_that_nobody_obeys_are_repeated_at_a_steady_rate(bench: Bench) -> None:
    workflow = await bench.publish({f"t{n}": {} for n in range(8)})
    async with (
        bench.master(kill_retry_s=0.1),
        kill_counter(bench.cluster, bench.session, "w1") as kills,
    ):
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        refs = await all_claimed(worker, 8)
        began = time.monotonic()
        await bench.command(CommandType.STOP, workflow, "stop", instance)
        async with asyncio.timeout(DEADLINE_S):
            while min(kills.asked[ref.task_instance_id] for ref in refs) < 7:
                await asyncio.sleep(0.01)
        assert time.monotonic() - began >= 0.6  # at once, and then every 0.1 s
        address = await worker._address(instance.partition)
        reports = [pb.Report(attempt=ref, kind=pb.KILLED, at=1.7e9) for ref in refs]
        request = pb.ReportRequest(worker_id="w1", reports=reports)
        await call(address, bench.channels.master(address).Report(request, timeout=DEADLINE_S))
        assert await bench.ended(instance.id) is WorkflowState.STOPPED


async def test_odd_reports_spoil_no_other_of_the_same_call(bench: Bench) -> None:
    workflow = await bench.publish({name: {} for name in "abcd"})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        a, b, c, d = await all_claimed(worker, 4)
        reports = [
            pb.Report(attempt=a, kind=pb.SUCCEEDED, at=1.7e9),
            pb.Report(attempt=b, at=1.7e9),  # of a kind that does not exist yet
            pb.Report(attempt=c, kind=pb.SUCCEEDED, at=math.nan, started_at=1e300),
            pb.Report(attempt=d, kind=pb.FAILED, at=1.7e9, reason="ended by \0 and \r\n"),
        ]
        reports[1].kind = 9  # type: ignore[assignment]
        address = await worker._address(instance.partition)
        request = pb.ReportRequest(worker_id="w1", reports=reports)
        answer = await call(
            address, bench.channels.master(address).Report(request, timeout=DEADLINE_S)
        )
    committed, retry = pb.ReportVerdict.COMMITTED, pb.ReportVerdict.RETRY
    assert [v.kind for v in answer.verdicts] == [committed, retry, committed, committed]
    ended = {t.task: t for t in await bench.tasks(instance.id)}
    assert (ended["d"].reason or "").startswith("ended by")
    assert ended["c"].state is TaskState.SUCCEEDED


async def test_worker_whose_clock_is_ahead_puts_off_no_retry(bench: Bench) -> None:
    workflow = await bench.publish({"a": {"retries": 1, "retry_delay": 0.2}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w1")
        (ref,) = await all_claimed(worker, 1)
        tomorrow = utc_now().timestamp() + 86_400
        report = pb.Report(attempt=ref, kind=pb.FAILED, at=tomorrow, started_at=tomorrow)
        address = await worker._address(instance.partition)
        request = pb.ReportRequest(worker_id="w1", reports=[report])
        await call(address, bench.channels.master(address).Report(request, timeout=DEADLINE_S))
        async with asyncio.timeout(DEADLINE_S):
            await worker.work(1)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


async def test_task_too_large_to_send_fails_with_the_reason(bench: Bench) -> None:
    big = "\u00e9" * 3_000_000
    workflow = await bench.publish(
        {"a": {"params": {"script": "true", "arguments": ["${p}"] * 5}}, "b": {}},
        parameters={"p": ""},
    )
    async with bench.master():
        instance = await bench.start(workflow, parameters={"p": big})
        async with (await bench.worker("w1")).working():
            assert await bench.ended(instance.id) is WorkflowState.FAILED
    tasks = {t.task: t for t in await bench.tasks(instance.id)}
    assert tasks["b"].state is TaskState.SUCCEEDED
    assert "bytes" in (tasks["a"].reason or "")


class QueueFailures(Listener):
    """Counts them."""

    count = 0

    def on_queue_failure(self) -> None:
        self.count += 1


async def test_only_what_is_queued_at_the_end_of_a_batch_stays_in_the_queue(bench: Bench) -> None:
    plan = WorkflowPlan.of(spec({"a": {}, "b": {}}))
    attempts = {
        "a": Attempt("a", 1, TaskState.QUEUED, id=1),
        "b": Attempt("b", 1, TaskState.PAUSED, id=2),
    }
    run = Run(1, plan, WorkflowState.RUNNING, 0, attempts, START, START)
    both = tuple(action((t, 1)) for t in "ab" for action in (Enqueue, Withdraw, Enqueue))
    queue = TaskQueue(bench.session)
    await layout.prepare(bench.session, 8)
    async with Members(bench.session, layout.WORKERS) as workers:
        listeners, failures = Listeners(), QueueFailures()
        listeners.register(failures)
        performer = Performer(queue, workers, bench.channels, listeners)
        await performer([(run, both)])
    claims = await queue.claim("default", 10, "w1")
    assert [claim.entry.task_instance_id for claim in claims] == [1]
    assert failures.count == 0


async def test_entry_that_went_missing_is_put_again_although_the_clock_was_set_back(
    bench: Bench,
) -> None:
    plan = WorkflowPlan.of(spec({"a": {}}))
    queued_at = utc_now() + timedelta(hours=1)
    attempts = {"a": Attempt("a", 1, TaskState.QUEUED, id=1, queued_at=queued_at)}
    run = Run(1, plan, WorkflowState.RUNNING, 0, attempts, START, START)
    engine = Engine(bench.database, lambda _: asyncio.sleep(0), utc_now)
    engine.runs[run.id] = run
    await layout.prepare(bench.session, 8)
    queue = TaskQueue(bench.session)
    await Sweeper(context_of(bench.database, engine), queue, lambda _: None).sweep()
    claims = await queue.claim("default", 10, "w1")
    assert [claim.entry.task_instance_id for claim in claims] == [1]
