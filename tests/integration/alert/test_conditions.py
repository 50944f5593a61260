"""What has not happened: deadlines and silent workflows by a moved clock, and the cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from shoal.alert.conditions.cluster import ClusterConditions
from shoal.alert.conditions.watcher import WATCHING, Watcher
from shoal.alert.jobs.reminders import Reminders
from shoal.coordination import Members, Membership, ZkSession, prepare
from shoal.coordination.cluster import layout
from shoal.core.alerts.occurrences import recovery
from shoal.core.alerts.records import AlertCondition
from shoal.core.runs.states import WorkflowState
from shoal.sql.errors import JobTaken
from shoal.sql.schema.tables import alert_condition, workflow_instance
from tests.integration.alert.conftest import Site
from tests.integration.sql.given import created, definition, published
from tests.support.servers.authority import Authority
from tests.support.waiting import STEADY_SESSION_S, eventually

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
_DONE = WorkflowState.SUCCEEDED


@dataclass
class Clock:
    """Shows what the test wants."""

    now: datetime = MONDAY

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Watched:
    """A site, the job of watching, and its clock."""

    site: Site
    watcher: Watcher
    session: ZkSession
    members: tuple[Members, Members]
    clock: Clock

    async def look(self, at: datetime | None = None) -> dict[str, AlertCondition]:
        """Look at a time; return what holds then, by subject."""
        self.clock.now = at or self.clock.now
        for one in self.members:
            await one.refresh()
        await self.watcher.look()
        async with self.site.database.unit_of_work(read_only=True) as uow:
            return {one.subject: one for one in (await uow.alert_conditions.all()).values()}

    async def ran(self, workflow_id: int, logical: datetime, *ended: Any, **more: Any) -> None:
        """Store a run as masters leave it: see ``ran``."""
        await ran(self.site, workflow_id, logical, *ended, **more)

    async def told(self) -> list[tuple[str, bool, str | None]]:
        """Return the events about conditions: trigger, whether it holds, and why."""
        async with self.site.database.unit_of_work(read_only=True) as uow:
            return [
                (one.data["trigger"], one.data["holds"], one.data["reason"])
                for one in await uow.events.after(0, 1000)
                if one.kind == "alert.condition"
            ]


async def ran(
    site: Site,
    workflow_id: int,
    logical: datetime,
    state: WorkflowState = _DONE,
    began: datetime | None = None,
    ended: datetime | None = None,
) -> None:
    """Store a run as masters leave it: an hour long, unless it says otherwise."""
    database = site.database
    [run] = await created(database, workflow_id, logical_time=logical, created_at=logical)
    is_over = state in (_DONE, WorkflowState.FAILED)
    values = {
        "state": state,
        "started_at": began or logical,
        "finished_at": (ended or logical + HOUR) if is_over else None,
    }
    async with database.unit_of_work() as uow:
        changed = update(workflow_instance).where(workflow_instance.c.id == run.id)
        await uow.connection.execute(changed.values(values))
        await uow.commit()


@pytest.fixture
async def watched(site: Site, zk_chroot: str) -> AsyncIterator[Watched]:
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            ZkSession(zk_chroot, session_timeout_s=STEADY_SESSION_S)
        )
        await prepare(session, 8)
        members = Members(session, layout.WORKERS), Members(session, layout.MASTERS)
        cluster = ClusterConditions(site.database, session, *members, None)
        clock = Clock()
        watcher = Watcher(site.database, 1, 15.0, clock, cluster)
        found = Watched(site, watcher, session, members, clock)
        async with site.database.unit_of_work() as uow:
            await uow.partitions.ensure(8)
            await uow.alert_jobs.begin(WATCHING, 1)
            await uow.commit()
        await site.channel()
        await site.receiver()
        yield found


async def rule(watched: Watched, trigger: str, **spec: object) -> None:
    """A rule about a workflow "daily", made long ago."""
    fields = {"triggers": [trigger], "workflows": ["daily"], **spec}
    if trigger.startswith(("worker", "master", "cluster")):
        del fields["workflows"]
    await watched.site.rule("watch", at=MONDAY - 30 * DAY, **fields)


async def daily(watched: Watched) -> int:
    """The workflow "daily", of the day before."""
    return await published(watched.site.database, definition("daily", project="p"))


async def test_run_that_does_not_finish_in_time_is_found_once(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.not-finished", deadline={"at": "07:30"})
    await watched.ran(workflow, MONDAY - DAY + 2 * HOUR)  # of the day before
    await watched.ran(workflow, MONDAY + 2 * HOUR, WorkflowState.RUNNING)
    assert not await watched.look(MONDAY + 7 * HOUR)
    found = await watched.look(MONDAY + 7.5 * HOUR)
    [one] = found.values()
    assert (one.rule, one.workflow) == ("watch", "daily")
    assert await watched.look(MONDAY + 8 * HOUR) == found
    assert not await watched.site.quarantined()  # as a condition that is stored twice would be
    reason = "no run for 2026-03-02 has succeeded by 2026-03-02 07:30 UTC"
    assert await watched.told() == [("workflow.not-finished", True, reason)]
    await watched.ran(workflow, MONDAY + 2 * HOUR + MINUTE)  # run by hand: it counts
    assert not await watched.look(MONDAY + 9 * HOUR)
    assert [holds for _, holds, _ in await watched.told()] == [True, False]


async def test_each_day_has_a_deadline_of_its_own(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.not-finished", deadline={"at": "07:30"})
    assert len(await watched.look(MONDAY + 8 * HOUR)) == 1
    assert len(await watched.look(MONDAY + DAY + 8 * HOUR)) == 2
    reasons = [str(reason) for _, holds, reason in await watched.told() if holds]
    assert ["2026-03-02" in reasons[0], "2026-03-03" in reasons[1]] == [True, True]
    await watched.ran(workflow, MONDAY + DAY + 2 * HOUR, ended=MONDAY + DAY + 9 * HOUR)
    assert not await watched.look(MONDAY + DAY + 10 * HOUR)
    assert [holds for _, holds, _ in await watched.told()] == [True, True, False, False]


async def test_run_that_is_late_already_done_is_not_found(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.not-finished", deadline={"at": "07:30"})
    await watched.ran(workflow, MONDAY + 2 * HOUR, ended=MONDAY + 8 * HOUR)
    assert not await watched.look(MONDAY + 9 * HOUR)  # nobody looked before: it is over


async def test_run_that_does_not_start(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.not-started", deadline={"at": "03:00", "days": ["MON", "TUE"]})
    assert await watched.look(MONDAY + 3 * HOUR)
    await watched.ran(workflow, MONDAY + 3 * HOUR - MINUTE, WorkflowState.RUNNING)
    assert not await watched.look(MONDAY + 3 * HOUR + MINUTE)
    assert await watched.look(MONDAY + DAY + 4 * HOUR)
    assert await watched.look(MONDAY + 2 * DAY + 4 * HOUR)  # no day of the rule: still Tuesday's


async def test_usual_time_is_learnt(watched: Watched) -> None:
    workflow = await daily(watched)
    usual = {"percentile": 90, "runs": 20, "margin": "5m"}
    await rule(watched, "workflow.not-finished", deadline=usual)
    for day in range(1, 21):
        logical = MONDAY - day * DAY + HOUR
        await watched.ran(workflow, logical, ended=logical + (40 if day % 10 else 400) * MINUTE)
    assert not await watched.look(MONDAY + 104 * MINUTE)
    [one] = (await watched.look(MONDAY + 105 * MINUTE)).values()
    assert one.trigger == "workflow.not-finished"


async def test_backfilled_runs_are_not_learnt_from(watched: Watched) -> None:
    workflow = await daily(watched)
    usual = {"percentile": 95, "runs": 10, "margin": "5m"}
    await rule(watched, "workflow.not-finished", deadline=usual)
    for day in range(1, 31):
        logical = MONDAY - day * DAY
        is_backfilled = day <= 10
        ended = logical + (20 * HOUR if is_backfilled else HOUR)
        await watched.ran(workflow, logical, ended=ended)
    async with watched.site.database.unit_of_work() as uow:
        newer = workflow_instance.c.logical_time >= MONDAY - 10 * DAY
        await uow.connection.execute(update(workflow_instance).where(newer).values(backfill_id=1))
        await uow.commit()
    assert not await watched.look(MONDAY + HOUR)
    assert await watched.look(MONDAY + 2 * HOUR)


async def test_dead_mans_switch(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.no-success", no_success_for="26h")
    await watched.ran(workflow, MONDAY, ended=MONDAY + HOUR)
    await watched.ran(workflow, MONDAY + DAY, WorkflowState.FAILED)
    assert not await watched.look(MONDAY + HOUR + 26 * HOUR - MINUTE)
    assert await watched.look(MONDAY + HOUR + 26 * HOUR)
    [(_, _, reason)] = await watched.told()
    assert reason == "no success for 1d 02h: the last success was 2026-03-02 01:00 UTC"
    await watched.ran(workflow, MONDAY - DAY, ended=MONDAY + 30 * HOUR)  # whatever it was for
    assert not await watched.look(MONDAY + 31 * HOUR)


async def test_stored_condition_of_an_unknown_trigger_stops_no_other(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.no-success", no_success_for="26h")
    await watched.ran(workflow, MONDAY, ended=MONDAY + HOUR)
    assert await watched.look(MONDAY + 28 * HOUR)
    async with watched.site.database.unit_of_work() as uow:
        await uow.connection.execute(update(alert_condition).values(trigger="JUNK"))
        await uow.commit()
    found = await watched.look(MONDAY + 29 * HOUR)  # it begins again, in place of the junk
    assert [one.trigger for one in found.values()] == ["workflow.no-success"]


async def test_workflow_that_never_succeeded_has_its_time(watched: Watched) -> None:
    await daily(watched)
    await rule(watched, "workflow.no-success", no_success_for="26h")
    begun = MONDAY - DAY / 2  # when it was published
    assert not await watched.look(begun + 25 * HOUR)
    assert await watched.look(begun + 27 * HOUR)


async def test_success_rate_falls_and_recovers(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.low-success-rate", success_rate={"below": 0.8, "runs": 5})
    for number, state in enumerate("SSFSF"):
        ended = _DONE if state == "S" else WorkflowState.FAILED
        assert not await watched.look()
        await watched.ran(workflow, MONDAY + number * HOUR, ended)
    assert await watched.look(MONDAY + 5 * HOUR)
    for number in range(5, 9):
        await watched.ran(workflow, MONDAY + number * HOUR)
    assert not await watched.look(MONDAY + 9 * HOUR)


async def test_archived_and_other_workflows_are_not_watched(watched: Watched) -> None:
    workflow = await daily(watched)
    await rule(watched, "workflow.not-started", workflows=["night-*"], deadline={"at": "03:00"})
    assert not await watched.look(MONDAY + 4 * HOUR)
    await rule(watched, "workflow.not-started", workflows=["*"], deadline={"at": "03:00"})
    assert await watched.look(MONDAY + 4 * HOUR)
    async with watched.site.database.unit_of_work() as uow:
        found = await uow.workflows.get("p", "daily")
        assert found.id == workflow
        await uow.lifecycle.archive("p", "daily", MONDAY)
        await uow.commit()
    assert not await watched.look(MONDAY + 5 * HOUR)


async def test_deleted_rule_leaves_nothing_and_tells_nothing(watched: Watched) -> None:
    await daily(watched)
    await rule(watched, "workflow.not-started", deadline={"at": "03:00"})
    assert await watched.look(MONDAY + 4 * HOUR)
    await rule(watched, "workflow.not-started", deadline={"at": "03:00"}, enabled=False)
    assert not await watched.look(MONDAY + 5 * HOUR)
    assert [holds for _, holds, _ in await watched.told()] == [True]


async def test_worker_that_is_gone_and_comes_back(watched: Watched) -> None:
    await rule(watched, "worker.gone")
    about = {"host": "alpha", "group": "default"}
    async with Membership(watched.session, layout.WORKERS, "w-1", about):
        async with Membership(watched.session, layout.WORKERS, "w-2", about):
            assert not await watched.look()
        assert list(await watched.look()) == ["worker.gone/default@alpha #2/watch"]
    found = await watched.look(MONDAY + HOUR)
    assert sorted(found)[1] == "worker.gone/default@alpha/watch"
    async with Membership(watched.session, layout.WORKERS, "w-3", about):
        assert list(await watched.look()) == ["worker.gone/default@alpha #2/watch"]
    assert len(await watched.look()) == 2


async def test_worker_that_never_comes_back_is_forgotten_without_a_recovery(
    watched: Watched,
) -> None:
    await rule(watched, "worker.gone")
    about = {"host": "alpha", "group": "default"}
    async with Membership(watched.session, layout.WORKERS, "w-1", about):
        assert not await watched.look()
    assert await watched.look(MONDAY)
    assert await watched.look(MONDAY + 29 * DAY)
    assert not await watched.look(MONDAY + 31 * DAY)
    async with watched.site.database.unit_of_work(read_only=True) as uow:
        events = [one for one in await uow.events.after(0, 100) if one.kind == "alert.condition"]
        assert await uow.alert_conditions.members("worker") == {}
    ends = [found for one in events if (found := recovery(one)) is not None]
    assert [one.is_told for one in ends] == [False]


async def test_what_was_not_seen_before_a_server_died_is_found_by_the_next(
    watched: Watched,
) -> None:
    await rule(watched, "master.gone")
    async with Membership(watched.session, layout.MASTERS, "m-1", {"host": "beta"}):
        assert not await watched.look()
    database = watched.site.database
    async with database.unit_of_work() as uow:
        await uow.alert_jobs.begin(WATCHING, 2)
        await uow.commit()
    with pytest.raises(JobTaken):
        await watched.look()
    cluster = ClusterConditions(database, watched.session, *watched.members, None)
    watched.watcher = Watcher(database, 2, 15.0, watched.clock, cluster)
    assert list(await watched.look()) == ["master.gone/beta/watch"]


async def test_degraded_cluster(watched: Watched) -> None:
    await rule(watched, "cluster.degraded")
    full = {"host": "alpha", "group": "default", "paused": "the disk is nearly full"}
    deaf = {"host": "beta", "database": {"answers": False}}
    async with (
        Membership(watched.session, layout.WORKERS, "w-1", full),
        Membership(watched.session, layout.MASTERS, "m-1", deaf),
    ):
        found = await watched.look()
        assert sorted(found) == [
            "cluster.degraded/master/beta/watch",
            "cluster.degraded/worker/default@alpha/watch",
        ]
    reasons = [reason for _, _, reason in await watched.told()]
    assert "worker default@alpha takes no work: the disk is nearly full" in reasons
    assert not await watched.look()


async def test_partitions_without_owner_and_a_certificate_that_ends(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched.session, "timeout_s", 0.0)
    files = Authority().identity(tmp_path / "node", expired=True)
    cluster = ClusterConditions(
        watched.site.database, watched.session, *watched.members, files.cert
    )
    watched.watcher = Watcher(watched.site.database, 1, 15.0, watched.clock, cluster)
    await rule(watched, "cluster.degraded")
    found = await watched.look()
    assert sorted(found) == [
        "cluster.degraded/certificate/watch",
        "cluster.degraded/partitions/watch",
    ]
    reasons = " ".join(str(reason) for _, _, reason in await watched.told())
    assert "8 of 8 partitions have no owner: 0, 1, 2" in reasons
    assert "ends at" in reasons


async def test_partitions_with_two_owners(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs = {}
    for number in range(8):
        node = await watched.session.create(
            layout.owner(number), b'{"owner_id": "m1"}', ephemeral=True
        )
        epochs[number] = node.czxid
    async with watched.site.database.unit_of_work() as uow:
        await uow.partitions.raise_epochs(epochs, "m1")
        await uow.partitions.raise_epochs({5: epochs[5] + 1}, "stranger")
        await uow.commit()
    await rule(watched, "cluster.degraded")
    monkeypatch.setattr(watched.session, "timeout_s", 0.0)  # an answer to a write sets it again
    assert sorted(await watched.look()) == ["cluster.degraded/partition owners/watch"]
    [(_, _, reason)] = await watched.told()
    assert str(reason).startswith("1 of 8 partitions have two owners: 5; owners in ZooKeeper: m1 ")
    async with watched.site.database.unit_of_work() as uow:
        await uow.partitions.raise_epochs({5: epochs[5] + 2}, "m1")
        await uow.commit()
    assert not await watched.look()


async def test_condition_is_told_and_that_it_is_over(site: Site) -> None:
    await site.channel()
    await site.receiver()
    workflow = await published(site.database, definition("daily", project="p"))
    silence = {"triggers": ["workflow.no-success"], "workflows": ["d*"], "no_success_for": "1h"}
    await site.rule("watch", at=MONDAY, **silence)
    async with site.server(watch_s=0.1):
        [facts] = await site.until(1)
        assert facts["subject"] == "[warning] p: daily has not succeeded for too long"
        [alert] = facts["alerts"]
        assert "no run has ever succeeded" in alert["reason"]
        now = datetime.now(UTC)
        await ran(site, workflow, now, ended=now)
        [_, facts] = await site.until(2)
    assert (facts["kind"], facts["total"]) == ("RESOLVED", 1)


async def test_cluster_that_cannot_be_seen_has_not_recovered(watched: Watched) -> None:
    await rule(watched, "cluster.degraded")
    full = {"host": "alpha", "group": "default", "paused": "the disk is nearly full"}
    async with Membership(watched.session, layout.WORKERS, "w-1", full):
        assert await watched.look()
    zookeeper = watched.site.cluster.zookeeper
    async with ZkSession(zookeeper, session_timeout_s=STEADY_SESSION_S) as lost:
        blind = ClusterConditions(watched.site.database, lost, *watched.members, None)
    watched.watcher = Watcher(watched.site.database, 1, 15.0, watched.clock, blind)
    assert await watched.look()
    assert [holds for _, holds, _ in await watched.told()] == [True]


async def quarantined(watched: Watched) -> list[tuple[str, str, int]]:
    """Return what alert servers have quarantined: kind, item, how often it was tried."""
    return [(one.kind, one.item, one.tries) for one in await watched.site.quarantined()]


async def test_run_at_the_end_of_the_calendar_is_not_learnt_from(watched: Watched) -> None:
    workflow = await daily(watched)
    usual = {"percentile": 95, "runs": 10, "timezone": "Asia/Shanghai"}
    await rule(watched, "workflow.not-finished", deadline=usual)
    for day in range(1, 7):
        await watched.ran(workflow, MONDAY - day * DAY + HOUR)
    for end in (datetime(9999, 12, 31, 23, tzinfo=UTC), datetime(1, 1, 1, 1, tzinfo=UTC)):
        [run] = await created(watched.site.database, workflow, logical_time=end)
        async with watched.site.database.unit_of_work() as uow:
            changed = update(workflow_instance).where(workflow_instance.c.id == run.id)
            ended = {"state": "SUCCEEDED", "started_at": MONDAY, "finished_at": MONDAY}
            await uow.connection.execute(changed.values(ended))
            await uow.commit()
    await watched.look(MONDAY + 9 * HOUR)
    assert await quarantined(watched) == []


async def test_workflow_that_cannot_be_looked_at_stops_no_other(watched: Watched) -> None:
    """What was known of it stays; it is looked at again, and forgotten when that works."""
    bad = await daily(watched)
    for number in range(5):
        await published(watched.site.database, definition(f"w{number}", project="p"))
    other = replace(watched.site, project="q")
    await published(watched.site.database, definition("daily", project="q"))
    await other.rule(
        "watch",
        at=MONDAY - 30 * DAY,
        triggers=["workflow.no-success"],
        workflows=["*"],
        no_success_for="26h",
    )
    rate = {"below": 0.9, "runs": 2}
    await rule(watched, "workflow.low-success-rate", workflows=["*"], success_rate=rate)
    for number in range(2):
        await watched.ran(bad, MONDAY + number * HOUR, WorkflowState.FAILED)
    known = await watched.look(MONDAY + 3 * HOUR)
    assert list(known) == ["workflow.low-success-rate/daily/watch"]
    await watched.site.rule(
        "silent",
        at=MONDAY - 30 * DAY,
        triggers=["workflow.no-success"],
        workflows=["*"],
        no_success_for="26h",
    )
    await broken(watched, bad)
    found = await watched.look(MONDAY + 2 * DAY)
    names = {f"workflow.no-success/w{number}/silent" for number in range(5)}
    assert set(found) == names | set(known) | {"workflow.no-success/daily/watch"}
    assert await quarantined(watched) == [("workflow", "p/daily", 1)]
    await watched.look(MONDAY + 2 * DAY)
    assert await quarantined(watched) == [("workflow", "p/daily", 2)]
    await repaired(watched, bad)
    found = await watched.look(MONDAY + 2 * DAY)
    assert "workflow.no-success/daily/silent" in found
    assert await quarantined(watched) == []


async def broken(watched: Watched, workflow: int) -> None:
    """Give the newest runs of a workflow an end that this version cannot read."""
    async with watched.site.database.unit_of_work() as uow:
        await uow.connection.execute(
            text(
                "UPDATE workflow_instance SET state = 'SUCCEEDED', finished_at = 'infinity'"
                f" WHERE workflow_id = {workflow}"
            )
        )
        await uow.commit()


async def repaired(watched: Watched, workflow: int) -> None:
    """Undo ``broken``; its runs have failed."""
    async with watched.site.database.unit_of_work() as uow:
        changed = update(workflow_instance).where(workflow_instance.c.workflow_id == workflow)
        await uow.connection.execute(changed.values(state="FAILED", finished_at=MONDAY))
        await uow.commit()


async def test_part_of_the_cluster_that_cannot_be_looked_at_stops_no_other(
    watched: Watched, tmp_path: Path
) -> None:
    await rule(watched, "cluster.degraded")
    certificate = tmp_path / "node.pem"
    certificate.write_bytes(b"junk")

    async def look(path: Path, at: datetime) -> set[str]:
        members = watched.members
        cluster = ClusterConditions(
            watched.site.database, watched.session, *members, path, watched.clock
        )
        clock = watched.clock
        watched.watcher = Watcher(watched.site.database, 1, 15.0, clock, cluster)
        return set(await watched.look(at))

    expected = {"cluster.degraded/certificate/watch"}
    assert await look(certificate, MONDAY) == expected
    unusable = tmp_path / ("x" * 300)  # not even the question whether it is there has an answer
    assert await look(unusable, MONDAY + HOUR) >= expected
    assert [item for item in await quarantined(watched) if item[0] == "cluster"] == [
        ("cluster", "certificate", 1)
    ]
    assert not await look(tmp_path / "none", MONDAY + 2 * HOUR) & expected
    assert await quarantined(watched) == []


@pytest.mark.parametrize("job", ["conditions", "reminders"])
async def test_look_that_takes_longer_than_the_interval_is_followed_by_a_pause(
    watched: Watched, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[datetime] = []

    async def slow() -> int:
        looks.append(watched.clock.now)
        watched.clock.now += MINUTE
        return 1

    reminders = Reminders(watched.site.database, 1, 15.0, watched.clock, None)
    monkeypatch.setattr(watched.watcher, "look", slow)
    monkeypatch.setattr(reminders, "_look", slow)
    working = asyncio.create_task(watched.watcher.run() if job == "conditions" else reminders.run())
    await eventually(lambda: looks)
    for _ in range(100):
        await asyncio.sleep(0)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert len(looks) == 1
