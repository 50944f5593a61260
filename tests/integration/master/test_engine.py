"""The engine with a real database: what a failed store and a bad run must not cost."""

import asyncio
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from shoal.core.decide import decide
from shoal.core.runs.commands import CommandState, CommandType, NewCommand
from shoal.core.runs.events import (
    Event,
    PauseRequested,
    ResumeRequested,
    StopRequested,
    TaskClaimed,
    TaskEnded,
    TimeReached,
)
from shoal.core.runs.quarantine import Kind
from shoal.core.runs.run import Action, Attempt, Decision, Enqueue, Run, Withdraw
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.master.dispatch.rpc import MasterRpc
from shoal.master.engine import engine
from shoal.master.engine.engine import Engine
from shoal.master.engine.listeners import Listener
from shoal.master.errors import NotOwner, NotStored, Quarantined
from shoal.master.services.scan import Scanner
from shoal.master.services.schedules import Scheduler
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.vault import Vault
from shoal.sql.errors import Fenced
from shoal.sql.schema.tables import schedule
from tests.integration.master.contexts import context_of
from tests.integration.master.engine_harness import Harness, Unsteady
from tests.integration.master.statements import noted_writes
from tests.support.clock import utc_now
from tests.support.databases import migrated_url
from tests.support.waiting import DEADLINE_S, eventually

NO_CONTEXT: Any = None  # of a gRPC call; the service does not use it


@pytest.fixture(params=["sqlite", "postgresql"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    async with Unsteady(migrated_url(request, request.param)) as database:
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(1)
            await uow.commit()
        yield Harness(database)


async def test_run_that_came_back_by_itself_still_gets_what_a_failed_store_lost(
    harness: Harness,
) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    harness.database.down = True
    async with harness.working():
        with pytest.raises(NotStored):  # its Begun was lost in the same batch
            await harness.engine.submit(0, run.id, TaskClaimed(1, "w", utc_now()))
        harness.database.down = False
        await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
        await harness.engine.heal()
        again = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert again.state is WorkflowState.RUNNING
    assert harness.actions == [(run.id, Enqueue(("a", 1)))]


async def test_report_about_an_unknown_instance_in_an_outage_does_not_stop_the_healing(
    harness: Harness,
) -> None:
    await harness.engine.take({0: 1}, "m")
    harness.database.down = True
    async with harness.working():
        with pytest.raises(NotStored):
            await harness.engine.submit(0, 999, TaskClaimed(1, "w", utc_now()))
        harness.database.down = False
        await harness.engine.heal()


async def test_run_that_the_database_refuses_does_not_hold_up_others(harness: Harness) -> None:
    runs = await harness.runs(5)
    await harness.engine.take({0: 1}, "m")
    async with harness.working():
        ids = []
        for run in runs:
            claimed = TaskClaimed(run.attempts["a"].id or 0, "w", utc_now())
            await harness.engine.submit(0, run.id, claimed)
            ids.append(run.attempts["a"].id or 0)
        ends = [TaskEnded(i, TaskSignal.FAIL, utc_now(), "w", exit_code=1) for i in ids]
        ends[2] = TaskEnded(ids[2], TaskSignal.FAIL, utc_now(), "w", exit_code=2**70)
        outcomes = await asyncio.gather(
            *(harness.engine.submit(0, r.id, e) for r, e in zip(runs, ends, strict=True)),
            return_exceptions=True,
        )
    assert isinstance(outcomes.pop(2), NotStored)
    assert {r.state for r in outcomes if isinstance(r, Run)} == {WorkflowState.FAILED}
    assert len(outcomes) == 4


async def test_resume_and_pause_decided_together_leave_nothing_to_queue(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    async with harness.working():
        await harness.engine.submit(0, run.id, PauseRequested(utc_now()))
        await asyncio.gather(
            harness.engine.submit(0, run.id, ResumeRequested(utc_now())),
            harness.engine.submit(0, run.id, PauseRequested(utc_now())),
        )
        again = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert again.state is WorkflowState.PAUSED
    assert again.attempts["a"].state is TaskState.PAUSED
    assert [type(action) for _, action in harness.actions[-2:]] == [Enqueue, Withdraw]


async def test_event_for_another_partition_is_refused_and_not_kept(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    async with harness.working():
        await harness.engine.submit(0, run.id, StopRequested(utc_now()))
        harness.engine.epochs[5] = 1
        with pytest.raises(NotOwner):
            await harness.engine.submit(5, run.id, TaskClaimed(0, "w", utc_now()))
    assert harness.engine.runs == {}


async def test_nobody_waits_for_an_engine_that_has_stopped(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    waiting = []
    async with harness.working():
        for _ in range(3):  # one batch under way, and events behind it
            event = TaskClaimed(0, "w", utc_now())
            waiting.append(asyncio.create_task(harness.engine.submit(0, run.id, event)))
            await asyncio.sleep(0)
    async with asyncio.timeout(DEADLINE_S):
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(NotStored):
            await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert {type(outcome) for outcome in outcomes} == {NotStored}


async def test_claim_of_a_quarantined_instance_is_refused_and_takes_no_slot(
    harness: Harness,
) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    harness.engine.quarantine_run(run, RuntimeError("beyond us"))
    ref = pb.AttemptRef(
        workflow_instance_id=run.id, task_instance_id=run.attempts["a"].id or 0, partition=0
    )
    async with harness.working():
        rpc = MasterRpc(harness.engine, utc_now, harness.database, Vault(Path("none")))
        verdict = await rpc._grant("w", ref, rpc._claim("w", ref))
        assert verdict.refusal.kind == pb.Refusal.SUPERSEDED
        await harness.engine.take({0: 2}, "m")  # the next owner tries again
        taken = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert taken.state is WorkflowState.RUNNING


# -- scanner and scheduler --------------------------------------------------------------------


async def test_partition_that_goes_while_a_scan_waits_for_the_database_ends_nothing(
    harness: Harness,
) -> None:
    command = await harness.command(CommandType.START)
    await harness.engine.take({0: 1}, "m")
    scanner = Scanner(context_of(harness.database, harness.engine))
    async with harness.working():
        async with harness.database.unit_of_work() as busy:  # SQLite's only writer
            await busy.partitions.raise_epochs({0: 1}, "m")
            before = harness.database.writers
            scan = asyncio.create_task(scanner.scan([0]))
            await eventually(lambda: harness.database.writers > before)
            await harness.engine.drop([0])
        await scan
    assert (await harness.stored(command)).state is CommandState.DONE
    assert harness.engine.runs == {}


async def test_notifications_of_others_do_not_put_off_a_unheard_command(
    harness: Harness,
) -> None:
    await harness.engine.take({0: 1}, "m")
    harness.engine.epochs[1] = 1  # a partition whose notification never rests
    scanner = Scanner(context_of(harness.database, harness.engine, scan_interval_s=0.2))
    async with harness.working():
        scanning = asyncio.create_task(scanner.run())
        command = await harness.command(CommandType.START)
        while command.state is CommandState.PENDING:
            scanner.notify(1)
            command = await harness.stored(command)
        scanning.cancel()
    assert command.state is CommandState.DONE


async def test_run_whose_actions_fail_is_tried_later_each_time_until_they_do_not(
    harness: Harness,
) -> None:
    (run,) = await harness.runs(1)
    is_broken = True

    async def perform(performed: Sequence[tuple[Run, tuple[Action, ...]]]) -> None:
        if is_broken:
            raise ValueError("beyond us")

    async def heal() -> None:
        while True:
            await harness.engine.heal()
            await asyncio.sleep(0.01)

    async def tries() -> int:
        async with harness.database.unit_of_work(read_only=True) as uow:
            found = await uow.quarantine.of(Kind.INSTANCE, run.id)
        return found.tries if found is not None else 0

    harness.engine = Engine(harness.database, perform, utc_now, 500, retry_s=0.02)
    async with harness.working(), asyncio.TaskGroup() as tasks:
        healing = tasks.create_task(heal())
        await harness.engine.take({0: 1}, "me")
        while await tries() < 4:
            await asyncio.sleep(0.01)
        is_broken = False
        while await tries():
            await asyncio.sleep(0.01)
        assert not harness.engine.quarantine.holds(Kind.INSTANCE, run.id)
        healing.cancel()


async def test_request_for_a_quarantined_instance_is_refused(harness: Harness) -> None:
    (run,) = await harness.runs(1)
    command = await harness.command(CommandType.STOP, run.id)
    await harness.engine.take({0: 1}, "m")
    harness.engine.quarantine_run(run, RuntimeError("beyond us"))
    async with harness.working():
        with pytest.raises(Quarantined):
            await harness.engine.submit(0, run.id, StopRequested(utc_now()))
        await Scanner(context_of(harness.database, harness.engine)).scan([0])
    command = await harness.stored(command)
    assert command.state is CommandState.REFUSED
    assert command.reason is not None
    assert "quarantined" in command.reason


async def test_new_instance_begins_in_the_transaction_that_creates_it(harness: Harness) -> None:
    command = await harness.command(CommandType.START)
    await harness.engine.take({0: 1}, "m")
    before = harness.database.writers
    await Scanner(context_of(harness.database, harness.engine)).scan([0])
    assert harness.database.writers == before + 1
    (run,) = harness.engine.runs.values()
    assert (await harness.stored(command)).result_instance_id == run.id
    async with harness.database.unit_of_work(read_only=True) as uow:
        stored = await uow.instances.run(run.id)
        events = await uow.events.after(0, 100, run.id)
    assert stored == run
    assert run.state is WorkflowState.RUNNING
    assert [(event.kind, event.data["state"]) for event in events] == [
        ("instance.state", "QUEUED"),
        ("instance.state", "RUNNING"),
        ("task.state", "QUEUED"),
    ]
    async with harness.working():
        await eventually(lambda: harness.actions == [(run.id, Enqueue(("a", 1)))])
    assert harness.database.writers == before + 1


@pytest.mark.parametrize("harness", ["sqlite"], indirect=True)
async def test_many_starts_of_a_workflow_cost_no_more_statements_than_a_few(
    harness: Harness,
) -> None:
    workflow_id = await harness.publish()
    await harness.engine.take({0: 1}, "m")
    scanner = Scanner(context_of(harness.database, harness.engine))
    statements = await noted_writes(harness.database)
    costs = []
    for count in (1, 3, 40):  # the first one reads the definition
        new = [NewCommand(CommandType.START, 0, f"{count}-{n}", workflow_id) for n in range(count)]
        async with harness.database.unit_of_work() as uow:
            await uow.commands.add_many(new, utc_now())
            await uow.commit()
        statements.clear()
        await scanner.scan([0])
        costs.append(len(statements))
    assert len(harness.engine.runs) == 44
    # Fence, definitions, ids; instances, attempts, events; outcomes of the commands.
    assert costs[2] == costs[1] == 7


async def test_attempts_of_one_call_are_stored_in_one_transaction(harness: Harness) -> None:
    runs = await harness.runs(8)
    await harness.engine.take({0: 1}, "m")
    rpc = MasterRpc(harness.engine, utc_now, harness.database, Vault(Path("none")))
    refs = [
        pb.AttemptRef(
            task_instance_id=run.attempts["a"].id or 0, workflow_instance_id=run.id, partition=0
        )
        for run in runs
    ]
    async with harness.working():
        await eventually(lambda: len(harness.actions) == len(runs))
        before = harness.database.writers
        fetched = await rpc.Fetch(pb.FetchRequest(worker_id="w", attempts=refs), NO_CONTEXT)
        assert harness.database.writers == before + 1
        ends = [pb.Report(attempt=ref, kind=pb.SUCCEEDED) for ref in refs]
        reported = await rpc.Report(pb.ReportRequest(worker_id="w", reports=ends), NO_CONTEXT)
        assert harness.database.writers == before + 2
    granted = [v.payload.task_instance_id for v in fetched.verdicts]
    assert granted == [ref.task_instance_id for ref in refs]
    assert [v.task_instance_id for v in reported.verdicts] == granted
    assert {v.kind for v in reported.verdicts} == {pb.ReportVerdict.COMMITTED}
    assert not harness.engine.runs


async def test_new_instance_that_cannot_be_decided_is_created_and_quarantined(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise AssertionError("a defect")

    monkeypatch.setattr("shoal.master.engine.beginning.decide", fails)
    monkeypatch.setattr("shoal.master.engine.engine.decide", fails)
    command = await harness.command(CommandType.START)
    await harness.engine.take({0: 1}, "m")
    async with harness.working():
        await Scanner(context_of(harness.database, harness.engine)).scan([0])
        created = (await harness.stored(command)).result_instance_id
        await eventually(lambda: harness.engine.quarantine.holds(Kind.INSTANCE, created))
    assert not harness.actions


async def test_schedule_that_cannot_be_read_keeps_no_other_from_firing(harness: Harness) -> None:
    hourly, daily = {"cron": "0 0 * * * ?"}, {"cron": "0 0 0 * * ?"}
    await harness.publish(schedules=[hourly, daily])
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    async with harness.database.unit_of_work() as uow:
        await uow.connection.execute(update(schedule).values(next_fire_at=long_ago))
        broken = update(schedule).where(schedule.c.cron == hourly["cron"])
        await uow.connection.execute(broken.values(timezone="No/Where"))
        await uow.commit()
    await harness.engine.take({0: 1}, "m")
    notified: list[int] = []
    context = context_of(
        harness.database, harness.engine, partitions=1, notify_owners=notified.extend
    )
    scheduler = Scheduler(context)
    async with harness.working():
        firing = asyncio.create_task(scheduler.run())
        while not notified:
            await asyncio.wait([firing], timeout=0.02)
            assert not firing.done(), firing
        firing.cancel()
    async with harness.database.unit_of_work(read_only=True) as uow:
        (command,) = await uow.commands.starts([0], 10)
    assert command.logical_time is not None
    assert command.logical_time.hour == 0


async def test_events_requeued_after_a_fence_keep_their_order(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = await harness.runs(1)
    await harness.engine.take({0: 1}, "m")
    harness.engine.epochs[1] = 1  # whose next owner the batch will meet
    harness.engine._inbox.clear()
    lost = harness.engine.enqueue(1, 99, TimeReached(utc_now()))
    attempt = run.attempts["a"].id or 0
    for event in (TaskClaimed(attempt, "w", utc_now()), StopRequested(utc_now())):
        harness.engine.post(0, run.id, event)
    _, first, later = harness.engine._inbox
    batch = harness.engine._inbox.take(2, 10, lambda _: 1)

    async def fenced(*_: object) -> None:
        raise Fenced([1])

    monkeypatch.setattr(harness.engine, "_bring_in", fenced)
    await harness.engine._process(batch)
    assert isinstance(lost.exception(), NotOwner)
    assert list(harness.engine._inbox) == [first, later]


async def fans(harness: Harness, count: int, width: int) -> list[Run]:
    """Let the engine hold runs whose first task is claimed, with ``width`` others behind it."""
    names = ["a", *(f"t{number}" for number in range(width))]
    tasks = [
        {
            "name": name,
            "type": "SHELL",
            "params": {"script": "true"},
            "depends_on": [] if name == "a" else ["a"],
        }
        for name in names
    ]
    runs = await harness.runs(count, tasks=tasks)
    await harness.engine.take({0: 1}, "m")
    for run in runs:
        attempt = run.attempts["a"].id or 0
        await harness.engine.submit(0, run.id, TaskClaimed(attempt, "w", utc_now()))
    return [harness.engine.runs[run.id] for run in runs]


def end_of(run: Run, task: str) -> TaskEnded:
    return TaskEnded(run.attempts[task].id or 0, TaskSignal.SUCCEED, utc_now(), "w")


async def test_what_is_about_many_tasks_is_not_decided_in_the_event_loop(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MOST_AT_ONCE", 10)
    here: list[int] = []  # attempts of each decision that was made in the loop's own thread
    elsewhere: list[int] = []
    pieces: list[int] = []  # applied without a turn for others
    loop = threading.current_thread()

    def decided(run: Run, event: Event, most: int = sys.maxsize) -> Decision:
        made = decide(run, event, most)
        where = here if threading.current_thread() is loop else elsewhere
        where.append(len(made.attempts))
        return made

    def replaced(run: Run, attempts: Iterable[Attempt]) -> None:
        some = list(attempts)
        pieces.append(len(some))
        replace(run, some)

    async with harness.working():
        monkeypatch.setattr(engine, "decide", decided)
        (run,) = await fans(harness, 1, 40)
        replace = Run.replace
        monkeypatch.setattr(Run, "replace", replaced)
        await harness.engine.submit(0, run.id, end_of(run, "a"))
        await harness.engine.submit(0, run.id, StopRequested(utc_now()))
    assert max(here) <= 10
    assert elsewhere[-2:] == [41, 40]  # the end with what it starts, and the stop
    assert max(pieces) <= 10
    assert all(one.state is TaskState.KILLED for one in [*run.attempts.values()][1:])


class _Stored(Listener):
    """Notes of which runs decisions were stored, in the last of ``batches``."""

    def __init__(self, batches: list[set[int]]) -> None:
        self._batches = batches

    def on_stored(self, run: Run, decision: Decision) -> None:
        self._batches[-1].add(run.id)


async def test_batch_ends_when_it_is_about_enough_tasks(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST_TASKS", 10)
    async with harness.working():
        runs = await fans(harness, 5, 6)
        stored: list[set[int]] = []
        harness.engine.register(_Stored(stored))
        store = harness.engine._store

        async def noted(*batch: Any) -> None:
            stored.append(set())
            await store(*batch)

        monkeypatch.setattr(harness.engine, "_store", noted)
        ends = [harness.engine.enqueue(0, run.id, end_of(run, "a")) for run in runs]
        later = []  # of each run, in this order; the second batch has them
        for run in runs:
            event = TaskClaimed(run.attempts["t0"].id or 0, "w", utc_now())
            later.append(harness.engine.enqueue(0, run.id, event))
        later += [harness.engine.enqueue(0, run.id, end_of(run, "t0")) for run in runs]
        await asyncio.gather(*ends, *later)
    ids = [run.id for run in runs]
    assert stored[:2] == [set(ids[:2]), set(ids[2:4])]  # seven tasks each
    assert [run.attempts["t0"].state for run in runs] == [TaskState.SUCCEEDED] * 5


async def test_starts_of_many_transactions_do_not_stand_upon_each_other(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the memory of all of them is freed in one long step, at the end."""
    monkeypatch.setattr("shoal.master.services.scan._MOST_TASKS", 1)
    workflow_id = await harness.publish()
    async with harness.database.unit_of_work() as uow:
        new = [NewCommand(CommandType.START, 0, f"k{n}", workflow_id) for n in range(5)]
        await uow.commands.add_many(new, utc_now())
        await uow.commit()
    depths: list[int] = []
    scanner = Scanner(context_of(harness.database, harness.engine))
    create = scanner._create_together

    async def noted(*given: Any) -> Any:
        depths.append(len(inspect.stack(0)))
        return await create(*given)

    monkeypatch.setattr(scanner, "_create_together", noted)
    async with harness.working():
        await harness.engine.take({0: 1}, "m")
        await scanner.scan({0})
    assert len(depths) == 5
    assert len(set(depths[1:])) == 1
