"""The masters' purges: by the rules, on request, beside other masters and recoveries."""

import asyncio
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import text, update

from shoal.core.backfill.request import BackfillRunState, BackfillState
from shoal.core.runs.commands import CommandState, CommandType, NewCommand
from shoal.core.runs.records import Instance
from shoal.core.runs.retention import Hours, Retention
from shoal.core.runs.states import WorkflowState
from shoal.core.timing.cron.expression import parse
from shoal.core.timing.cron.trigger import ShoalCronTrigger
from shoal.master.settings import MasterSettings
from shoal.sql import Database, UnitOfWork
from shoal.sql.errors import Fenced
from shoal.sql.schema.tables import backfill_run, command, event, task_instance, workflow_instance
from tests.integration.master.services.backfill_harness import PARTITIONS, Harness
from tests.integration.master.upkeep.purge_harness import (
    Keeping,
    ask,
    asked,
    count,
    ids,
    publish,
    stored,
)
from tests.integration.master.upkeep.purge_harness import database as database
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S

FOR_EVER = Retention.of_days(instances=0, newest=0, events=0, commands=0, backfills=0)


async def test_what_is_over_goes_and_what_is_open_stays(database: Database) -> None:
    workflow_id = await publish(database)
    async with Keeping(database).working() as master:
        for number in range(7):
            await master.run(workflow_id, f"over-{number}")
        still = await master.run(workflow_id, "open", to_end=False)
        gone = await master.purger.purge()
    assert (gone["instances"], gone["attempts"], gone["commands"]) == (7, 7, 7)
    assert await ids(database) == {still.id}
    assert await count(database, task_instance) == await count(database, command) == 1
    assert await count(database, event) == 0


async def test_rules_may_say_for_ever(database: Database) -> None:
    workflow_id = await publish(database)
    async with Keeping(database, retention=FOR_EVER).working() as master:
        await master.run(workflow_id, "k")
        assert not await master.purger.purge()
    assert await count(database, event) > 0


async def test_newest_instances_stay(database: Database) -> None:
    workflow_id = await publish(database)
    keeps_two = Retention(timedelta(microseconds=1), 2, None, None, None)
    async with Keeping(database, retention=keeps_two).working() as master:
        runs = [await master.run(workflow_id, f"k{n}") for n in range(5)]
        await master.purger.purge()
        assert await ids(database) == {run.id for run in runs[3:]}
        # However often: what is kept now is what was kept before.
        await master.purger.purge()
        assert await ids(database) == {run.id for run in runs[3:]}


async def test_former_owner_deletes_nothing(database: Database) -> None:
    workflow_id = await publish(database)
    async with Keeping(database, 1).working() as former:
        await former.run(workflow_id, "k")
        async with Keeping(database, 2).working():
            with pytest.raises(Fenced):
                await former.purger.purge()
            assert len(await ids(database)) == 1


async def test_each_master_purges_its_own_partitions(database: Database) -> None:
    workflow_id = await publish(database)
    async with Keeping(database, 1).working() as one:
        runs = [await one.run(workflow_id, f"k{n}") for n in range(12)]
        other = Keeping(database, 2)
        theirs = {0, 1}
        await other.engine.take(dict.fromkeys(theirs, 2), "m2")
        await one.engine.drop(theirs)
        await asyncio.gather(one.purger.purge(), other.purger.purge())
        assert await ids(database) == set()
        assert {run.partition for run in runs} > theirs
        assert await count(database, event) == 0


async def test_purge_beside_recoveries_loses_none_and_breaks_none(database: Database) -> None:
    """Each instance is either recovered, whole, or gone, and its command refused."""
    workflow_id = await publish(database)
    async with Keeping(database, purge_batch=1).working() as master:
        runs = [await master.run(workflow_id, f"k{n}") for n in range(20)]
        keys = {}

        async def recover(run: Instance) -> None:
            key = f"recover-{run.id}"
            new = NewCommand(
                CommandType.RECOVER, run.partition, key, workflow_id, instance_id=run.id
            )
            async with database.unit_of_work() as uow:
                keys[run.id], _ = await uow.commands.add(new, utc_now())
                await uow.commit()
            await master.scanner.scan([run.partition])

        async def recover_all() -> None:
            for run in reversed(runs):
                await recover(run)

        await asyncio.gather(recover_all(), master.purger.purge())
        left = await ids(database)
        for run in runs:
            async with database.unit_of_work(read_only=True) as uow:
                asked = await uow.commands.with_key(f"recover-{run.id}")
                if run.id in left:
                    assert asked is not None
                    assert asked.state is CommandState.DONE
                    assert (await uow.instances.run(run.id)).state is WorkflowState.RUNNING
                    attempts = await uow.tasks.of_instance(run.id, all_attempts=True)
                    assert [one.attempt for one in attempts] == [1, 2]
                else:
                    assert asked is None or asked.state is CommandState.REFUSED, run.id
        assert await count(database, task_instance) == 2 * len(left)


async def test_request_is_carried_out_with_its_progress(database: Database) -> None:
    one, other = await publish(database), await publish(database, name="other")
    async with Keeping(database, retention=FOR_EVER).working() as master:
        for number in range(5):
            await master.run(one, f"k{number}")
        stays = await master.run(other, "other")
        rehearsal = await ask(database, is_rehearsal=True, before=utc_now(), workflow_id=one)
        await master.purger.serve_requests()
        seen = await stored(database, rehearsal)
        assert (seen.counts.instances, seen.counts.attempts) == (5, 5)
        assert seen.oldest is not None
        assert seen.finished_at is not None
        assert len(await ids(database)) == 6
        real = await ask(database, before=utc_now(), workflow_id=one, requested_by="me")
        assert (await stored(database, real)).partitions_done == 0
        await master.purger.serve_requests()
    done = await stored(database, real)
    assert (done.partitions_done, done.counts.instances) == (PARTITIONS, 5)
    assert done.asked.requested_by == "me"
    assert done.oldest == seen.oldest
    assert await ids(database) == {stays.id}
    # The keys are promised for ever here, whatever is asked for.
    assert await count(database, command) == 6


async def test_request_about_a_project_leaves_the_others_alone(database: Database) -> None:
    one = await publish(database, name="a", project="first")
    other = await publish(database, name="b", project="second")
    async with Keeping(database, retention=FOR_EVER).working() as master:
        await master.run(one, "k1")
        stays = await master.run(other, "k2")
        events = await count(database, event)
        number = await ask(database, before=utc_now(), project="first")
        await master.purger.serve_requests()
        assert await ids(database) == {stays.id}
        assert (await stored(database, number)).finished_at is not None
        assert 0 < await count(database, event) < events


async def test_request_waits_for_every_owner(database: Database) -> None:
    workflow_id = await publish(database)
    async with Keeping(database).working() as master:
        await master.run(workflow_id, "k")
        await master.engine.drop([3])
        number = await ask(database, before=utc_now())
        await master.purger.serve_requests()
        assert (await stored(database, number)).partitions_done == PARTITIONS - 1
        await master.engine.take({3: 2}, "m1")
        await master.purger.serve_requests()
        assert (await stored(database, number)).finished_at is not None


async def nest(database: Database, child: Instance, parent: Instance) -> None:
    """Make an instance that of a task of another one."""
    async with database.unit_of_work() as uow:
        (task,) = await uow.tasks.of_instance(parent.id)
        values = {"parent_task_id": task.id}
        of = workflow_instance.c.id == child.id
        await uow.connection.execute(update(workflow_instance).where(of).values(**values))
        await uow.commit()


async def test_request_comes_back_for_children_when_their_parents_have_gone(
    database: Database,
) -> None:
    """The owner of the children may come before the owner of the parents."""
    workflow_id = await publish(database)
    async with Keeping(database).working() as master:
        child, parent = [await master.run(workflow_id, f"k{n}") for n in range(2)]
        await nest(database, child, parent)  # it has the lower id, so it is looked at first
        rehearsal = await ask(database, is_rehearsal=True, before=utc_now())
        number = await ask(database, before=utc_now())
        await master.purger.serve_requests()
        assert (await stored(database, rehearsal)).counts.instances == 2
        assert await ids(database) == {child.id}
        assert (await stored(database, number)).finished_at is None
        await master.purger.serve_requests()
        assert (await stored(database, number)).counts.instances == 2
        assert await ids(database) == set()


async def test_request_ends_though_parents_stay(database: Database) -> None:
    """A parent that is among the newest keeps its children, and no request waits for ever."""
    workflow_id = await publish(database)
    other = await publish(database, name="other")
    keeps_one = Retention(timedelta(microseconds=1), 1, None, None, None)
    async with Keeping(database, retention=keeps_one).working() as master:
        child = await master.run(workflow_id, "child")
        await master.run(workflow_id, "newer")
        parent = await master.run(other, "parent")
        await nest(database, child, parent)
        number = await ask(database, before=utc_now())
        for _ in range(5):
            await master.purger.serve_requests()
        assert (await stored(database, number)).finished_at is not None
        assert {child.id, parent.id} < await ids(database)


@pytest.mark.parametrize("by_project", [False, True])
async def test_rehearsal_counts_what_the_purge_removes(
    database: Database, by_project: bool
) -> None:
    """Children of parents that stay, their commands, and events of all ages."""
    plain = await publish(database, name="plain", project="p")
    inner = await publish(database, name="inner", project="p")
    outer = await publish(database, name="outer", project="q")
    keeps_one = Retention.of_days(instances=1e-9, newest=1, events=1e-9, commands=1e-9, backfills=0)
    async with Keeping(database, retention=keeps_one).working() as master:
        for number in range(4):
            await master.run(plain, f"plain-{number}")
        goes, stays = [await master.run(outer, f"outer-{n}") for n in range(2)]
        children = [await master.run(inner, f"inner-{n}") for n in range(5)]
        await nest(database, children[0], goes)
        await nest(database, children[1], stays)
        await nest(database, children[2], children[1])  # its grandparent stays
        before = utc_now()
        fields = {"before": before, "project": "p"} if by_project else {"before": before}
        rehearsal = await ask(database, is_rehearsal=True, **fields)
        await master.purger.serve_requests()
        real = await ask(database, **fields)
        for _ in range(6):
            await master.purger.serve_requests()
        seen, done = await stored(database, rehearsal), await stored(database, real)
        assert done.finished_at is not None
        assert seen.counts == done.counts
        assert seen.counts.commands == seen.counts.instances
        # 3 of plain, and of inner those that are neither the newest nor kept by a parent; and,
        # by the rules of all projects, the older one of outer with its child.
        assert seen.counts.instances == (4 if by_project else 6)


KILLED = """\
import asyncio, sys
from shoal.master.settings import MasterSettings
from shoal.sql import Database, UnitOfWork
from tests.integration.master.upkeep.purge_harness import Keeping

async def main():
    async with Database(sys.argv[1]) as database:
        async with Keeping(database, 2, purge_batch=2).working() as master:
            await master.purger.purge()
    print("survived")

asyncio.run(main())
"""


@pytest.mark.parametrize("point", ["purge.before_commit", "purge.after_commit"])
async def test_master_killed_in_the_middle_leaves_whole_instances_and_the_next_goes_on(
    request: pytest.FixtureRequest, database: Database, point: str
) -> None:
    workflow_id = await publish(database)
    async with Keeping(database).working() as master:
        for number in range(6):
            await master.run(workflow_id, f"k{number}")
        still = await master.run(workflow_id, "open", to_end=False)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        KILLED,
        url_of(database),
        env={**os.environ, "SHOAL_FAILPOINTS": f"{point}=kill@2"},
        cwd=Path(__file__).parents[4],
        stdout=subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        said, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert b"survived" not in said
    gone = 2 if point == "purge.before_commit" else 4
    left = await ids(database)
    assert len(left) == 7 - gone
    assert await count(database, task_instance) == len(left)
    async with Keeping(database, 3).working() as heir:
        await heir.purger.purge()
    assert await ids(database) == {still.id}
    assert await count(database, command) == 1


def url_of(database: Database) -> str:
    return database._url.render_as_string(hide_password=False)


async def test_work_purges_at_its_hours_and_serves_requests_at_any(database: Database) -> None:
    workflow_id = await publish(database)
    now = datetime.now(UTC)
    another = Hours(
        (now + timedelta(hours=6)).time(), (now + timedelta(hours=7)).time(), ZoneInfo("UTC")
    )
    quick: dict[str, Any] = {"purge_interval_s": 0.01, "scan_interval_s": 0.01}
    async with Keeping(database, hours=another, **quick).working() as master:
        await master.run(workflow_id, "k")
        working = asyncio.create_task(master.jobs.run())
        number = await ask(database, is_rehearsal=True, before=utc_now())
        master.purger.notify(0)
        while (await stored(database, number)).finished_at is None:
            await asyncio.sleep(0.01)
        assert len(await ids(database)) == 1
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    async with Keeping(database, 2, **quick).working() as master:
        working = asyncio.create_task(master.jobs.run())
        while await ids(database):
            await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


@pytest.mark.parametrize(("until", "purges"), [("04:00", 1), ("06:00", 0)])
async def test_purge_that_waited_looks_at_its_hours_again_and_comes_once(
    database: Database, monkeypatch: pytest.MonkeyPatch, until: str, purges: int
) -> None:
    clock = Clock(datetime(2100, 1, 1, 2, tzinfo=UTC))
    night = MasterSettings(purge_hours="01:00-05:00").hours
    master = Keeping(database, hours=night, clock=clock, purge_interval_s=1800.0)
    purged: list[datetime] = []

    async def purge() -> None:
        purged.append(clock.now)

    monkeypatch.setattr(master.purger, "purge", purge)
    async with master.purger._working:  # a request is being carried out
        master.jobs.soon("purge")
        working = asyncio.create_task(master.jobs.run())
        for _ in range(20):
            await asyncio.sleep(0)
        clock.to(f"2100-01-01 {until}:00")
    for _ in range(50):
        await asyncio.sleep(0)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert purged == [clock.now] * purges


AT_TWO = ShoalCronTrigger(parse("0 0 2 * * ?"))


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def to(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    """Noon of a day on which everything in these tests is old."""
    return Clock(datetime(2100, 1, 1, 12, tzinfo=UTC))


async def settled(database: Database, master: Keeping, clock: Clock) -> None:
    """Have the first purge, which comes at once, behind us."""
    await master.look()
    assert await asked(database) == [clock.now]


async def test_purge_by_the_clock_comes_once_a_night(database: Database, clock: Clock) -> None:
    workflow_id = await publish(database)
    by_cron: dict[str, Any] = {"trigger": AT_TWO, "clock": clock, "purge_interval_s": 1e-9}
    async with Keeping(database, **by_cron).working() as master:
        await settled(database, master, clock)
        await master.run(workflow_id, "k")
        clock.to("2100-01-02 01:59:59")
        await master.look()
        assert len(await ids(database)) == 1
        clock.to("2100-01-02 02:00:03")
        await master.look()
        assert await ids(database) == set()
        assert await asked(database) == [clock.now]
        clock.to("2100-01-02 02:00:08")
        await master.run(workflow_id, "k2")
        await master.look()
        assert len(await ids(database)) == 1
        # One that has not ended, since a partition has no owner, is superseded.
        await master.engine.drop([3])
        clock.to("2100-01-03 02:00:01")
        await master.look()
        clock.to("2100-01-09 13:00:00")
        await master.look()
        assert await asked(database) == [clock.now]


async def test_next_owner_neither_repeats_a_purge_nor_forgets_one(
    database: Database, clock: Clock
) -> None:
    workflow_id = await publish(database)
    by_cron: dict[str, Any] = {"trigger": AT_TWO, "clock": clock, "purge_interval_s": 1e-9}
    async with Keeping(database, 1, **by_cron).working() as former:
        await settled(database, former, clock)
        at = clock.now
        async with Keeping(database, 2, **by_cron).working() as heir:
            await heir.look()
            assert await asked(database) == [at]
            await heir.run(workflow_id, "k")
            clock.to("2100-01-02 09:00:00")
            with pytest.raises(Fenced):
                await former.look()
            assert await asked(database) == [at]
            await heir.look()
            assert await asked(database) == [clock.now]
            assert await ids(database) == set()


async def test_clock_that_was_set_back_brings_one_purge_within_a_minute(
    database: Database, clock: Clock
) -> None:
    by_cron: dict[str, Any] = {"trigger": AT_TWO, "clock": clock, "purge_interval_s": 1e-9}
    async with Keeping(database, **by_cron).working() as master:
        await settled(database, master, clock)
        working = asyncio.create_task(master.jobs.run())
        await asyncio.sleep(0.2)  # the jobs are looked at every 50 ms
        clock.to("2099-06-01 12:00:00")
        await asyncio.sleep(0.2)
        clock.to("2099-06-01 12:01:00")
        while not (purged := [one for one in await asked(database) if one == clock.now]):
            await asyncio.sleep(0.05)
        clock.to("2099-06-01 12:05:00")
        await asyncio.sleep(0.2)
        assert clock.now not in await asked(database)
        assert len(purged) == 1
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_error_that_passes_puts_off_a_purge_by_a_minute(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_cron: dict[str, Any] = {"trigger": AT_TWO, "clock": clock, "purge_interval_s": 1e-9}
    async with Keeping(database, **by_cron).working() as master:
        errors: list[Exception] = [Fenced([0])]

        async def fence(_uow: UnitOfWork, _epochs: object) -> None:
            if errors:
                raise errors.pop()

        monkeypatch.setattr(UnitOfWork, "fence", fence)
        working = asyncio.create_task(master.jobs.run())
        while errors:
            await asyncio.sleep(0.01)
        clock.to("2100-01-01 12:01:00")
        while await asked(database) != [clock.now]:
            await asyncio.sleep(0.05)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_clock_that_jumps_to_and_fro_has_nobody_purge_all_the_time(
    database: Database, clock: Clock
) -> None:
    """Between two purges lies the interval, by a clock that cannot be set."""
    async with Keeping(
        database, trigger=AT_TWO, clock=clock, purge_interval_s=3600.0
    ).working() as master:
        master.purger._due_s = 0.0
        await settled(database, master, clock)
        purged = await asked(database)
        for n in range(20):
            clock.to(f"2{n % 2}00-06-01 12:00:00")
            await master.look()
        assert await asked(database) == purged
        master.purger._due_s = 0.0
        await master.look()
        assert await asked(database) == [clock.now]


async def test_only_the_owner_of_partition_0_asks(database: Database, clock: Clock) -> None:
    by_cron: dict[str, Any] = {"trigger": AT_TWO, "clock": clock, "purge_interval_s": 1e-9}
    async with Keeping(database, **by_cron).working() as master:
        await master.engine.drop([0])
        await master.look()
        assert await asked(database) == []


async def test_purges_beside_a_backfill_cost_it_nothing(database: Database) -> None:
    """Runs that have ended stay as long as their backfill goes on, or it could be retried."""
    harness = Harness(database)
    await harness.publish()
    async with Keeping(database).working() as master:
        await harness.ask(dates=["2026-01-01", "2026-01-02", "2026-01-03"], parallel=2)
        await master.poll()
        ended = 0
        while started := await harness.runs(BackfillRunState.STARTED):
            await master.end(started[0])
            ended += 1
            await master.purger.purge()
            assert len(await ids(database)) >= ended
            await master.poll()
        backfill = await harness.backfill()
        assert backfill.state is BackfillState.SUCCEEDED
        await master.purger.purge()
        assert len(await ids(database)) == 1  # the newest success
        assert await count(database, backfill_run) == 0
        retry = await harness.request(CommandType.RETRY_BACKFILL, backfill, "again")
        await master.scanner.scan(range(PARTITIONS))
        assert "backfill" in await harness.reason(retry)


async def test_row_that_cannot_be_read_ends_no_master(database: Database) -> None:
    """Purges stop at it, say so, and try again; nothing else does."""
    if database.kind != "sqlite":
        return  # PostgreSQL stores no text as a moment
    workflow_id = await publish(database)
    async with Keeping(database, purge_interval_s=0.01, scan_interval_s=0.01).working() as master:
        run = await master.run(workflow_id, "k")
        await spoil(database, "'never'")
        working = asyncio.create_task(master.jobs.run())
        for n in range(3):
            await master.run(workflow_id, f"more-{n}")
        assert not working.done()
        await spoil(database, "1")
        while run.id in await ids(database):
            await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def spoil(database: Database, moment: str) -> None:
    """Write junk where the first instance was created."""
    async with database.unit_of_work() as uow:
        statement = f"UPDATE workflow_instance SET created_at = {moment} WHERE id = 1"
        await uow.connection.execute(text(statement))
        await uow.commit()
