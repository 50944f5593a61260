"""A run or a row that cannot be worked with is quarantined, and costs no other anything."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from shoal.core.decide import decide
from shoal.core.runs.commands import CommandState, CommandType
from shoal.core.runs.events import (
    StopRequested,
    TaskClaimed,
    TaskEnded,
)
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.run import Action, Decision, Run
from shoal.core.runs.states import TaskSignal, WorkflowState
from shoal.master.dispatch.rpc import MasterRpc
from shoal.master.dispatch.side_thread import Patience
from shoal.master.engine.engine import Engine
from shoal.master.errors import NotStored, Quarantined
from shoal.master.services.commands.scanner import Scanner
from shoal.master.services.schedules import Scheduler
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.vault import Vault
from shoal.sql.schema.tables import schedule
from tests.integration.master.contexts import context_of
from tests.integration.master.engine.engine_harness import Harness
from tests.support.clock import utc_now
from tests.support.waiting import eventually

NO_STORES = Resolver(SecretStores({}))


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
        rpc = MasterRpc(harness.engine, utc_now, harness.database, Vault(Path("none")), NO_STORES)
        verdict = await rpc._grant("w", ref, rpc._claim("w", ref), Patience())
        assert verdict.refusal.kind == pb.Refusal.SUPERSEDED
        await harness.engine.take({0: 2}, "m")  # the next owner tries again
        taken = await harness.engine.submit(0, run.id, TaskClaimed(0, "w", utc_now()))
    assert taken.state is WorkflowState.RUNNING


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
            found = await uow.quarantine.of(ItemKind.INSTANCE, run.id)
        return found.tries if found is not None else 0

    harness.engine = Engine(harness.database, perform, utc_now, retry_s=0.02)
    async with harness.working(), asyncio.TaskGroup() as tasks:
        healing = tasks.create_task(heal())
        await harness.engine.take({0: 1}, "me")
        while await tries() < 4:
            await asyncio.sleep(0.01)
        is_broken = False
        while await tries():
            await asyncio.sleep(0.01)
        assert not harness.engine.quarantine.holds(ItemKind.INSTANCE, run.id)
        healing.cancel()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
async def test_shortage_of_a_master_quarantines_no_run(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    runs = await harness.runs(2)
    times = 0

    def without_room(run: Run, *given: Any) -> Decision:
        nonlocal times
        if run.id == runs[0].id and isinstance(given[0], StopRequested) and times < 2:
            times += 1
            raise error
        return decide(run, *given)

    await harness.engine.take({0: 1}, "m")
    monkeypatch.setattr("shoal.master.engine.engine.decide", without_room)
    async with harness.working():
        stops = [harness.engine.submit(0, run.id, StopRequested(utc_now())) for run in runs]
        first, second = await asyncio.gather(*stops, return_exceptions=True)
        assert isinstance(first, NotStored)
        assert not isinstance(first, Quarantined)
        assert isinstance(second, Run)
        assert second.state is WorkflowState.STOPPED
        await harness.engine.heal()
        stopped = await harness.engine.submit(0, runs[0].id, StopRequested(utc_now()))
        assert stopped.state is WorkflowState.STOPPED
        assert not harness.engine.quarantine.held(ItemKind.INSTANCE)


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


async def test_new_instance_that_cannot_be_decided_is_created_and_quarantined(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise AssertionError("a defect")

    monkeypatch.setattr("shoal.master.services.commands.starts.decide", fails)
    monkeypatch.setattr("shoal.master.engine.engine.decide", fails)
    command = await harness.command(CommandType.START)
    await harness.engine.take({0: 1}, "m")
    async with harness.working():
        await Scanner(context_of(harness.database, harness.engine)).scan([0])
        created = (await harness.stored(command)).result_instance_id
        await eventually(lambda: harness.engine.quarantine.holds(ItemKind.INSTANCE, created))
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
