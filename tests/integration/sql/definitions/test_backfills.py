"""Backfills in the database: what ran before, what became of a try, what is kept apart."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shoal.core.backfill.plan import BackfillPlan, Past, PlannedRun
from shoal.core.backfill.request import Backfill, BackfillRequest, BackfillRunState, BackfillState
from shoal.core.backfill.window import DayOutcome
from shoal.core.definition.selection import Selection
from shoal.core.runs.commands import CommandState, CommandType, NewCommand
from shoal.core.runs.run import Decision
from shoal.core.runs.states import WorkflowState
from shoal.sql import Database
from shoal.sql.errors import AlreadyExists, NotFound, StaleRow
from tests.integration.sql.given import (
    LATER,
    NOW,
    accepted,
    created,
    published,
    start,
)

S = BackfillRunState


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


async def made(database: Database, workflow: int, key: str = "b", days: int = 3) -> Backfill:
    """A backfill of some days, the last of them left out."""
    request = BackfillRequest.model_validate(
        {"project": "demo", "workflow": "flow", "dates": ["2026-01-01"], "parallel": 2}
    )
    runs = [
        PlannedRun(n, workflow, "demo", "flow", day(n + 1), "why" if n == days - 1 else None)
        for n in range(days)
    ]
    new = NewCommand(CommandType.BACKFILL, 3, key, workflow, requested_by="me")
    (command,) = await accepted(database, new)
    async with database.unit_of_work() as uow:
        backfill = await uow.backfills.create(command, request, BackfillPlan(tuple(runs)), NOW)
        await uow.commands.done(command.id, None, NOW)
        await uow.commit()
    return backfill


async def test_what_is_created_is_read_again(database: Database) -> None:
    workflow = await published(database)
    backfill = await made(database, workflow)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.backfills.get(backfill.id) == backfill
        runs = await uow.backfills.runs(backfill.id)
        counts = await uow.backfills.counts([backfill.id])
        command = await uow.commands.get(backfill.command_id)
    assert (backfill.state, backfill.partition) == (BackfillState.RUNNING, 3)
    assert (backfill.project, backfill.workflow, backfill.requested_by) == ("demo", "flow", "me")
    assert backfill.request.parallel == 2
    assert [(run.state, run.reason) for run in runs] == [
        (S.WAITING, None),
        (S.WAITING, None),
        (S.SKIPPED, "why"),
    ]
    assert [run.logical_time for run in runs] == [day(1), day(2), day(3)]
    assert counts == {backfill.id: {S.WAITING: 2, S.SKIPPED: 1}}
    assert (command.state, command.backfill_id) == (CommandState.DONE, backfill.id)
    assert command.result_instance_id is None


async def test_a_command_never_becomes_two_backfills(database: Database) -> None:
    workflow = await published(database)
    backfill = await made(database, workflow)
    async with database.unit_of_work() as uow:
        command = await uow.commands.get(backfill.command_id)
        with pytest.raises(AlreadyExists):
            await uow.backfills.create(command, backfill.request, BackfillPlan(()), NOW)


async def test_a_backfill_moves_on_only_from_the_state_that_was_read(database: Database) -> None:
    before = await made(database, await published(database))
    async with database.unit_of_work() as uow:
        await uow.backfills.set_state(before, BackfillState.PAUSED, None, LATER, ended=False)
        await uow.commit()
    async with database.unit_of_work() as uow:
        with pytest.raises(StaleRow):
            await uow.backfills.set_state(before, BackfillState.FAILED, None, LATER, ended=True)
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.backfills.get(before.id)).state is BackfillState.PAUSED
        events = [one for one in await uow.events.after(0, 100) if one.kind == "backfill.state"]
    assert [one.data for one in events] == [
        {"backfill_id": before.id, "workflow": "flow", "state": "RUNNING"},
        {"backfill_id": before.id, "workflow": "flow", "state": "PAUSED"},
    ]


async def test_only_what_has_not_ended_is_active(database: Database) -> None:
    workflow = await published(database)
    first, second = [await made(database, workflow, key) for key in "ab"]
    async with database.unit_of_work() as uow:
        assert await uow.backfills.active([3]) == {first.id: 3, second.id: 3}
        assert await uow.backfills.active([4]) == {}
        assert await uow.backfills.partitions_of([first.id, 99]) == {first.id: 3}
        await uow.backfills.set_state(first, BackfillState.SUCCEEDED, None, LATER, ended=True)
        assert await uow.backfills.active([3]) == {second.id: 3}
        with pytest.raises(NotFound):
            await uow.backfills.get(99)


async def test_the_outcome_is_that_of_the_newest_try(database: Database) -> None:
    workflow = await published(database)
    backfill = await made(database, workflow)
    refused, pending = await accepted(database, start(workflow), start(workflow))
    (run,) = await created(database, workflow)
    async with database.unit_of_work() as uow:
        started = await uow.instances.get(run.id)
        await uow.commands.refuse(refused.id, "no", NOW)
        await uow.commands.done(started.command_id, run.id, NOW)
        runs = await uow.backfills.runs(backfill.id)
        tried = [
            replace(one, state=S.STARTED, tries=1, command_id=command)
            for one, command in zip(runs, (refused.id, pending.id, started.command_id), strict=True)
        ]
        await uow.backfills.save(backfill.id, tried)
        outcomes = await uow.backfills.outcomes(backfill.id, {S.STARTED})
        assert await uow.backfills.outcomes(backfill.id, {S.FAILED}) == {}
    assert outcomes == {
        0: DayOutcome(CommandState.REFUSED, reason="no"),
        1: DayOutcome(CommandState.PENDING),
        2: DayOutcome(CommandState.DONE, run.id, WorkflowState.QUEUED, run.partition),
    }


async def test_what_ran_before_is_known_by_its_best_outcome(database: Database) -> None:
    workflow = await published(database)
    ends = [
        (day(1), WorkflowState.FAILED),
        (day(1), WorkflowState.SUCCEEDED),
        (day(2), WorkflowState.STOPPED),
        (day(3), WorkflowState.FAILED),
        (day(3), WorkflowState.RUNNING),
    ]
    for moment, state in ends:
        (run,) = await created(database, workflow, logical_time=moment)
        async with database.unit_of_work() as uow:
            decision = Decision(state=state, previous=WorkflowState.QUEUED)
            await uow.instances.save([(run, decision)], LATER)
            await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        times = [day(number) for number in range(1, 5)]
        found = await uow.backfills.past(workflow, times, None)
        assert await uow.backfills.past(workflow + 1, times, None) == {}
    assert found == {
        (workflow, day(1)): Past.SUCCEEDED,
        (workflow, day(2)): Past.FAILED,
        (workflow, day(3)): Past.RUNNING,
    }


async def test_runs_of_chosen_tasks_count_only_among_themselves(database: Database) -> None:
    workflow = await published(database)
    chosen = Selection(("a",))
    await created(database, workflow, logical_time=day(1), selection=chosen)
    await created(database, workflow, logical_time=day(2))
    async with database.unit_of_work(read_only=True) as uow:
        times = [day(1), day(2)]
        assert (await uow.backfills.past(workflow, times, None)).keys() == {(workflow, day(2))}
        both = await uow.backfills.past(workflow, times, chosen)
        other = await uow.backfills.past(workflow, times, Selection(("b",)))
    assert both.keys() == {(workflow, day(1)), (workflow, day(2))}
    assert other.keys() == {(workflow, day(2))}
