"""When runs should have ended: settled as they are created, and told of once if they go on."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import TimeReached
from shoal.core.runs.records import Instance
from shoal.core.runs.states import TaskSignal, WorkflowState
from tests.integration.master.services.admission_harness import PARTITIONS, Harness
from tests.support.clock import utc_now
from tests.support.database.databases import migrated

FIRED = datetime(2026, 3, 2, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
async def harness(sqlite_url: str) -> AsyncIterator[Harness]:
    """On SQLite."""
    async with migrated(sqlite_url, PARTITIONS) as database:
        yield Harness(database)


async def look(harness: Harness, instance: Instance) -> int:
    """Let the run look at the time, as its timer would; return how often lateness was told."""
    engine = harness.masters[instance.partition].engine
    await engine.submit(instance.partition, instance.id, TimeReached(utc_now()))
    return len(await told(harness, instance))


async def told(harness: Harness, instance: Instance) -> list[str]:
    """Return the deadlines that the events of a run's lateness name."""
    async with harness.database.unit_of_work(read_only=True) as uow:
        events = await uow.events.after(0, 1_000)
    return [
        one.data["deadline_at"]
        for one in events
        if one.kind == "instance.late" and one.workflow_instance_id == instance.id
    ]


async def again(harness: Harness, instance: Instance) -> Instance:
    """Run all of an instance again, as a new one."""
    outcome = await harness.request(CommandType.RERUN, instance)
    assert outcome.result_instance_id is not None, outcome.reason
    return await harness.instance(outcome.result_instance_id)


async def test_a_duration_counts_from_the_fire_time_else_from_the_creation(
    harness: Harness,
) -> None:
    workflow = await harness.publish(deadline="1h")
    async with harness.working():
        fired = await harness.start(workflow, logical_time=FIRED, schedule_id=7)
        assert fired.deadline_at == FIRED + HOUR
        repeated = await again(harness, fired)
        assert (repeated.schedule_id, repeated.deadline_at) == (7, repeated.created_at + HOUR)
        by_hand = await harness.start(workflow, logical_time=FIRED)
        assert by_hand.deadline_at == by_hand.created_at + HOUR


async def test_a_time_of_day_is_one_of_the_runs_own_zone(harness: Harness) -> None:
    workflow = await harness.publish(deadline="08:00", timezone="Europe/Berlin")
    async with harness.working():
        fired = await harness.start(workflow, logical_time=FIRED, schedule_id=7)
        assert fired.deadline_at == FIRED + HOUR
        zone = "Asia/Shanghai"  # of the schedule: it is 14:00 there
        zoned = await harness.start(workflow, logical_time=FIRED, schedule_id=7, timezone=zone)
        assert zoned.deadline_at == FIRED + 18 * HOUR


async def test_runs_of_backfills_have_no_deadline(harness: Harness) -> None:
    timed, plain = await harness.publish("timed", deadline="1h"), await harness.publish("plain")
    async with harness.working():
        run = await harness.start(timed, logical_time=FIRED, backfill_id=3)
        assert run.deadline_at is None
        assert (await harness.start(plain)).deadline_at is None


async def test_lateness_is_told_once_also_by_the_next_master(harness: Harness) -> None:
    workflow = await harness.publish(deadline="1h")
    async with harness.working():
        late = await harness.start(workflow, logical_time=utc_now() - 2 * HOUR, schedule_id=7)
        in_time = await harness.start(workflow)
        await harness.is_in(late, WorkflowState.RUNNING)
        assert await look(harness, in_time) == 0
        assert await look(harness, late) == await look(harness, late) == 1
    async with harness.working(epoch=2):
        assert await look(harness, late) == 1
        assert late.deadline_at is not None
        assert await told(harness, late) == [late.deadline_at.isoformat()]
        await harness.end(late)
        await harness.is_in(late, WorkflowState.SUCCEEDED)


async def test_a_run_that_waits_for_others_is_late_too(harness: Harness) -> None:
    workflow = await harness.publish(deadline="1h", overlap="queue")
    async with harness.working():
        await harness.start(workflow)
        waiting = await harness.start(workflow, logical_time=utc_now() - 2 * HOUR, schedule_id=7)
        assert await look(harness, waiting) == 1
        assert (await harness.instance(waiting.id)).state is WorkflowState.QUEUED


async def test_a_run_that_has_ended_is_late_only_if_it_goes_on_again(harness: Harness) -> None:
    workflow = await harness.publish(deadline="1h")
    async with harness.working():
        run = await harness.start(workflow, logical_time=utc_now() - 2 * HOUR, schedule_id=7)
        await harness.end(run, TaskSignal.FAIL)
        ended = await harness.is_in(run, WorkflowState.FAILED)
        assert not ended.is_late(utc_now())
        assert await look(harness, run) == 0
        await harness.request(CommandType.RECOVER, run)
        assert await look(harness, run) == 1
        assert (await harness.instance(run.id)).is_late(utc_now())
