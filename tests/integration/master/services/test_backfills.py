"""Backfills with a real engine and scanner: plans, the window, requests, masters that die."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import update

from shoal.core.backfill.request import BackfillRunState, BackfillState
from shoal.core.definition.fields import Priority
from shoal.core.definition.selection import Selection
from shoal.core.runs.commands import CommandState, CommandType, NewCommand
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskSignal, WorkflowState
from shoal.master.services import backfills
from shoal.runtime import failpoints
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import DatabaseUnavailable, Fenced
from shoal.sql.schema.tables import backfill
from tests.integration.master.services.backfill_harness import PARTITIONS, Harness, Master
from tests.support.clock import utc_now
from tests.support.database.databases import migrated, migrated_url
from tests.support.waiting import eventually

S, B = BackfillRunState, BackfillState
FIVE_DAYS = {"from": "2026-01-01", "to": "2026-01-05"}


on_both = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """SQLite, where a test does not ask for both."""
    url = migrated_url(request, getattr(request, "param", "sqlite"))
    async with migrated(url, PARTITIONS) as found:
        yield found


@pytest.fixture
def harness(database: Database) -> Harness:
    return Harness(database)


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, number, hour, tzinfo=UTC)


# -- what is started -------------------------------------------------------------------------


@on_both
async def test_each_date_runs_once_and_never_more_than_the_window_holds(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        command = await harness.ask(**FIVE_DAYS, parallel=2)
        await master.poll()
        assert (await harness.stored(command)).state is CommandState.DONE
        assert (await harness.stored(command)).backfill_id == 1
        ended = 0
        while started := await harness.runs(S.STARTED):
            assert len(started) == min(2, 5 - ended)
            assert await harness.unfinished() == len(started)
            await master.end(started[-1])
            ended += 1
            await master.poll()
        assert await harness.state() is B.SUCCEEDED
    instances = await harness.instances()
    assert [one.logical_time for one in instances] == [day(n) for n in range(1, 6)]
    assert {one.backfill_id for one in instances} == {1}
    assert {one.priority for one in instances} == {Priority.LOW}
    assert (await harness.backfill()).finished_at is not None
    assert [run.instance_id for run in await harness.runs()] == [one.id for one in instances]


async def test_serial_complement_ends_with_the_first_failure(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(**FIVE_DAYS)
        for signal in (TaskSignal.SUCCEED, TaskSignal.FAIL):
            await master.poll()
            (run,) = await harness.runs(S.STARTED)
            await master.end(run, signal)
        await master.poll()
        assert await harness.state() is B.FAILED
    assert await harness.counts() == {S.SUCCEEDED: 1, S.FAILED: 1, S.CANCELLED: 3}
    assert len(await harness.instances()) == 2
    assert (await harness.backfill()).reason == "1 of 5 runs failed, 3 did not start"


async def test_a_date_runs_as_its_schedule_would_run_it(
    harness: Harness, database: Database
) -> None:
    schedules = [
        {"cron": "0 0 6 * * ?", "timezone": "Europe/Berlin", "parameters": {"a": "1", "b": "1"}},
        {"cron": "0 0 7 * * ?", "timezone": "Asia/Tokyo", "enabled": False},
    ]
    await harness.publish(schedules=schedules, parameters={"a": "0", "b": "0", "c": "0"})
    async with Master(database).working() as master:
        await harness.ask(**{**FIVE_DAYS, "to": "2026-01-01"}, parameters={"b": "2"})
        await master.poll()
    (instance,) = await harness.instances()
    assert (instance.logical_time, instance.timezone) == (day(1, 5), "Europe/Berlin")
    assert dict(instance.parameters) == {"a": "1", "b": "2", "c": "0"}


async def test_chosen_tasks_version_priority_and_labels_reach_every_run(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    await harness.publish(description="newer")
    async with Master(database).working() as master:
        labels = {"why": "late data"}
        await harness.ask(
            dates=["2026-01-01"], version=1, tasks=["a"], priority="HIGH", labels=labels
        )
        await master.poll()
    (instance,) = await harness.instances()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.labels.of([instance.id]) == {instance.id: labels}
    assert (instance.version, instance.priority) == (1, Priority.HIGH)
    assert instance.selection == Selection(("a",))


@on_both
async def test_what_ran_before_is_left_out(harness: Harness, database: Database) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask("first", dates=["2026-01-02", "2026-01-03"], parallel=2)
        await master.poll()
        good, bad = await harness.runs(S.STARTED)
        await master.end(good)
        await master.end(bad, TaskSignal.FAIL)
        await master.poll()
        await harness.ask("second", **FIVE_DAYS, parallel=5)
        await harness.ask("third", **FIVE_DAYS, only="failed", parallel=5)
        await master.poll()
    second = await harness.runs(number=2)
    assert [run.state for run in second] == [
        S.STARTED,
        S.SKIPPED,
        S.SKIPPED,
        S.STARTED,
        S.STARTED,
    ]
    assert second[1].reason == "it has succeeded before"
    assert [run.logical_time for run in await harness.runs(S.STARTED, number=3)] == [day(3)]


@on_both
async def test_workflows_downstream_run_behind_the_dates_that_they_look_for(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    # The newest definitions of the other workflows say which depends on which; their tasks are
    # plain ones as far as this test's masters are concerned.
    waiting = {
        "name": "a",
        "type": "DEPENDENT",
        "params": {"when": {"workflow": "w", "date": "last1Days"}},
        "enabled": True,
    }
    await harness.publish("report", tasks=[waiting])
    async with Master(database).working() as master:
        await harness.ask(
            **{"from": "2026-01-01", "to": "2026-01-02"}, downstream="all", parallel=4
        )
        await master.poll()
        states = {(run.workflow_id, run.logical_time): run.state for run in await harness.runs()}
        assert states == {
            (1, day(1)): S.STARTED,
            (2, day(1)): S.STARTED,  # what it looks for lies before the range
            (1, day(2)): S.STARTED,
            (2, day(2)): S.WAITING,
        }
        first = next(run for run in await harness.runs(S.STARTED) if run.workflow_id == 1)
        await master.end(first)
        await master.poll()
        assert not await harness.runs(S.WAITING)


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({**FIVE_DAYS, "by": "schedule"}, "no schedule"),
        ({**FIVE_DAYS, "tasks": ["b"]}, "no task 'b'"),
        ({**FIVE_DAYS, "parameters": {"nope": "1"}}, "no such parameter"),
        ({**FIVE_DAYS, "version": 9}, "version 9"),
        ({**FIVE_DAYS, "only": "failed"}, "nothing to run"),
    ],
)
async def test_a_request_that_cannot_be_carried_out_is_refused_with_the_reason(
    harness: Harness, database: Database, fields: dict[str, Any], words: str
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        command = await harness.ask(**fields)
        await master.poll()
    assert words in await harness.reason(command)
    assert await harness.instances() == []


async def test_request_whose_commit_was_not_answered_is_noticed_by_the_next_poll(
    harness: Harness, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been stored: no scan repeats it, and its partition is not idle any longer."""
    await harness.publish()

    async def unanswered(uow: UnitOfWork) -> None:
        await uow.commit()
        raise DatabaseUnavailable("the connection was lost")

    async with Master(database).working() as master:
        await master.backfills.poll(is_regular=True)  # all partitions are idle
        command = await harness.ask(dates=["2026-01-01"])
        with monkeypatch.context() as patch:
            patch.setattr(backfills, "_commit", unanswered)
            await master.scanner.scan(range(PARTITIONS))
        assert (await harness.stored(command)).state is CommandState.DONE
        await master.backfills.poll(is_regular=True)
        assert len(await harness.runs(S.STARTED)) == 1


async def test_a_start_that_is_refused_fails_its_date(harness: Harness, database: Database) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(dates=["2026-01-01"])
        await master.scanner.scan(range(PARTITIONS))
        # Published after the plan was made: no run can start without a value any more.
        await harness.publish(parameters={"needed": {"type": "string"}})
        await master.poll()
        await master.poll()
    (run,) = await harness.runs()
    assert run.state is S.FAILED
    assert "needed" in (run.reason or "")
    assert await harness.state() is B.FAILED


# -- requests --------------------------------------------------------------------------------


async def test_paused_it_starts_nothing_until_it_is_resumed(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(**FIVE_DAYS, parallel=2)
        await master.poll()
        await harness.request(CommandType.PAUSE_BACKFILL, await harness.backfill(), "pause")
        await master.poll()
        for run in await harness.runs(S.STARTED):
            await master.end(run)
        await master.poll()
        assert await harness.state() is B.PAUSED
        assert await harness.counts() == {S.SUCCEEDED: 2, S.WAITING: 3}
        again = await harness.request(CommandType.PAUSE_BACKFILL, await harness.backfill(), "again")
        await master.poll()
        assert await harness.reason(again) == "cannot pause: the backfill is PAUSED"
        await harness.request(CommandType.RESUME_BACKFILL, await harness.backfill(), "resume")
        await master.poll()
        assert await harness.counts() == {S.SUCCEEDED: 2, S.STARTED: 2, S.WAITING: 1}


@on_both
async def test_cancelled_it_stops_what_runs_and_can_be_taken_up_again(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(**FIVE_DAYS, parallel=2)
        await master.poll()
        await harness.request(CommandType.CANCEL_BACKFILL, await harness.backfill(), "cancel")
        await master.poll()  # the tasks were not claimed yet: their instances stop at once
        await master.poll()
        assert await harness.state() is B.CANCELLED
        assert await harness.counts() == {S.CANCELLED: 5}
        assert {one.state for one in await harness.instances()} == {WorkflowState.STOPPED}
        assert (await harness.backfill()).finished_at is not None
        await harness.request(CommandType.RETRY_BACKFILL, await harness.backfill(), "retry")
        await master.poll()
        assert await harness.counts() == {S.STARTED: 2, S.WAITING: 3}
        assert (await harness.backfill()).finished_at is None
        assert [run.tries for run in await harness.runs()] == [2, 2, 0, 0, 0]
    assert len(await harness.instances()) == 4


async def test_a_run_that_was_only_asked_for_is_stopped_once_it_is_there(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(**FIVE_DAYS)
        await master.scanner.scan(range(PARTITIONS))
        await master.backfills.advance(range(PARTITIONS))
        assert await harness.instances() == []
        cancel = await harness.request(
            CommandType.CANCEL_BACKFILL, await harness.backfill(), "cancel"
        )
        await master.backfills.carry_out(cancel)
        await master.poll()  # the instance comes to be
        assert await harness.state() is B.CANCELLING
        assert await harness.counts() == {S.STARTED: 1, S.CANCELLED: 4}
        await master.poll()
        await master.poll()
        assert await harness.state() is B.CANCELLED
    (instance,) = await harness.instances()
    assert instance.state is WorkflowState.STOPPED
    assert "backfill 1 was cancelled" in (instance.reason or "")


@on_both
async def test_a_retry_starts_what_failed_and_follows_what_was_recovered(
    harness: Harness, database: Database
) -> None:
    workflow = await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(dates=["2026-01-01", "2026-01-02"], parallel=2)
        await master.poll()
        first, second = await harness.runs(S.STARTED)
        for run in (first, second):
            await master.end(run, TaskSignal.FAIL)
        await master.poll()
        assert await harness.state() is B.FAILED
        await _recover(harness, workflow, await harness.instance_of(first))
        await master.poll()
        await harness.request(CommandType.RETRY_BACKFILL, await harness.backfill(), "retry")
        await master.poll()
        assert [(run.state, run.tries) for run in await harness.runs()] == [
            (S.STARTED, 1),
            (S.STARTED, 2),
        ]
        nothing = await harness.request(
            CommandType.RETRY_BACKFILL, await harness.backfill(), "nothing"
        )
        await master.poll()
        assert "nothing to retry" in await harness.reason(nothing)


async def _recover(harness: Harness, workflow: int, instance: Instance) -> None:
    new = NewCommand(
        CommandType.RECOVER, instance.partition, "recover", workflow, instance_id=instance.id
    )
    async with harness.database.unit_of_work() as uow:
        await uow.commands.add(new, utc_now())
        await uow.commit()


# -- masters that come and go ----------------------------------------------------------------


@on_both
async def test_a_former_owner_starts_nothing_and_its_successor_goes_on(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as former:
        await harness.ask(**FIVE_DAYS, parallel=2)
        await former.poll()
        first = (await harness.runs(S.STARTED))[0]
        await former.end(first)
        backfill = await harness.backfill()
        async with Master(database, epoch=2).working() as successor:
            with pytest.raises(Fenced):
                await former.backfills.step(1, backfill.partition)
            assert await harness.counts() == {S.STARTED: 2, S.WAITING: 3}
            pause = await harness.request(CommandType.PAUSE_BACKFILL, backfill, "pause")
            await former.backfills.carry_out(pause)  # logged, and left to the owner
            assert (await harness.stored(pause)).state is CommandState.PENDING
            await successor.poll()
            assert await harness.state() is B.PAUSED
            await harness.request(CommandType.RESUME_BACKFILL, backfill, "resume")
            while await harness.state() is not B.SUCCEEDED:
                await successor.poll()
                for run in await harness.runs(S.STARTED):
                    await successor.end(run)
    assert [one.logical_time for one in await harness.instances()] == [day(n) for n in range(1, 6)]


async def test_a_backfill_that_this_version_cannot_read_holds_up_no_other(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask("newer", dates=["2026-01-01"])
        await master.scanner.scan(range(PARTITIONS))
        async with database.unit_of_work() as uow:
            await uow.connection.execute(update(backfill).values(request={"speed": 3}))
            await uow.commit()
        await harness.ask("ours", dates=["2026-01-02"])
        await master.poll()
        assert await harness.counts(1) == {S.WAITING: 1}
        assert await harness.counts(2) == {S.STARTED: 1}


@on_both
@pytest.mark.parametrize("point", ["backfill.before_commit", "backfill.after_commit"])
async def test_a_failure_at_any_point_of_any_step_costs_no_date_and_doubles_none(
    harness: Harness, database: Database, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second commit of a backfill fails, before it or with its answer lost."""
    await harness.publish()
    monkeypatch.setattr(failpoints, "_armed_points", failpoints.parse(f"{point}=raise%2"))
    async with Master(database).working() as master:
        command = await harness.ask(**FIVE_DAYS, parallel=2)
        while (await harness.stored(command)).state is CommandState.PENDING:
            await master.poll()
        while await harness.state() is not B.SUCCEEDED:
            await master.poll()
            started = await harness.runs(S.STARTED)
            assert len(started) <= 2
            assert await harness.unfinished() <= 2
            for run in started[:1]:
                if run.command_id is not None and await _has_instance(harness, run.command_id):
                    await master.end(run)
    assert [one.logical_time for one in await harness.instances()] == [day(n) for n in range(1, 6)]
    assert [run.tries for run in await harness.runs()] == [1] * 5


async def _has_instance(harness: Harness, command_id: int) -> bool:
    async with harness.database.unit_of_work(read_only=True) as uow:
        command = await uow.commands.get(command_id)
        if command.result_instance_id is None:
            return False
        instance = await uow.instances.get(command.result_instance_id)
        return instance.state in (WorkflowState.QUEUED, WorkflowState.RUNNING)


async def test_a_new_backfill_starts_at_once_also_where_there_was_none(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await master.poll()  # there is none: from now on notifications are not for backfills
        work = asyncio.create_task(master.backfills.run())
        try:
            for number in (1, 2):  # the first one may be due to its first poll
                master.notified.clear()
                await harness.ask(f"k{number}", dates=[f"2026-01-0{number}"])
                await master.scanner.scan(range(PARTITIONS))
                await eventually(lambda: master.notified)
            assert not work.done()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
    assert await harness.counts(1) == await harness.counts(2) == {S.STARTED: 1}


async def test_the_end_of_a_run_wakes_the_backfill(harness: Harness, database: Database) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(**FIVE_DAYS)
        await master.poll()
        work = asyncio.create_task(master.backfills.run())
        try:
            for _ in range(3):  # the first one may be due to its first poll
                (run,) = await harness.runs(S.STARTED)
                master.notified.clear()
                await master.end(run)
                # Its regular poll comes in a minute, and no notification arrives here.
                await eventually(lambda: master.notified)
                await master.scanner.scan(range(PARTITIONS))
            assert not work.done()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
    assert await harness.counts() == {S.SUCCEEDED: 3, S.STARTED: 1, S.WAITING: 1}


@on_both
async def test_the_end_of_a_run_notifies_the_notification_of_another_master(
    harness: Harness, database: Database
) -> None:
    await harness.publish()
    async with Master(database).working() as master:
        await harness.ask(dates=["2026-01-01", "2026-01-02"])
        await master.poll()
        (run,) = await harness.runs(S.STARTED)
        home = (await harness.backfill()).partition
        instance = await harness.instance_of(run)
        assert instance.partition != home, "chosen so by the key"
        await master.engine.drop([home])
        master.notified.clear()
        await master.end(run)
        work = asyncio.create_task(master.backfills.run())
        try:
            await eventually(lambda: master.notified == [home])
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
