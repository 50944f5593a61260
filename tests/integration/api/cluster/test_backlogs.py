"""Health of a cluster whose parts answer and whose work lags behind: each finding has its limit."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update

from shoal.api.operations.cluster.backlogs import find_backlogs
from shoal.api.settings import ApiSettings
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.membership import Membership
from shoal.core.alerts.records import DefinitionKind
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.runs.states import TaskState
from shoal.sql import UnitOfWork
from shoal.sql.schema.tables import alert_job, event, history_verified, partition, task_instance
from tests.integration.api.conftest import PREFIX, Api
from tests.support.waiting import DEADLINE_S

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(hours=5)


@pytest.fixture
def settings() -> ApiSettings:
    return ApiSettings(
        port=0,
        queued_limit_s=3600,
        alerts_lag_limit_s=3600,
        export_age_limit_s=3600,
        purge_age_limit_s=3600,
        loop_lag_limit_s=30,  # this process may stand still for some seconds
    )


async def _findings(api: Api) -> Mapping[str, Mapping[str, Any]]:
    """Return what /health finds, but for what a cluster without masters lacks."""
    found = (await api.client.get(f"{PREFIX}/health")).json()
    assert (found["status"] == "ok") is (not found["findings"])
    lacking = ("health.no_master", "health.no_worker", "health.partitions", "health.commands")
    return {one["code"]: one for one in found["findings"] if one["code"] not in lacking}


@asynccontextmanager
async def _master(api: Api, **data: Any) -> AsyncIterator[None]:
    """A master that has been at work for long, and tells ``data``."""
    cluster, about = api.services.cluster, {"started_at": LONG_AGO.isoformat(), **data}
    async with Membership(cluster.session, layout.MASTERS, "m1", about):
        async with asyncio.timeout(DEADLINE_S):
            async for view in cluster.masters.changes():
                if "m1" in view:
                    break
        yield


async def test_a_cluster_in_order_has_no_finding(api: Api) -> None:
    assert await _findings(api) == {}


async def test_a_task_that_waits_in_a_queue_for_long_is_named(api: Api) -> None:
    await api.publish()
    run = await api.run()
    attempt = next(iter(run.attempts.values())).id
    t = task_instance.c

    async def queue(uow: UnitOfWork) -> None:
        values = {"state": TaskState.QUEUED, "queued_at": LONG_AGO}
        await uow.connection.execute(update(task_instance).where(t.id == attempt).values(**values))

    await api.store(queue)
    await _queue_later_attempt_again(api)
    found = (await _findings(api))["health.queued"]
    assert found["arguments"]["task_instance"] == attempt
    assert found["arguments"]["age_s"] >= 4 * 3600
    assert f"task instance {attempt} has waited in the queue of worker group" in found["text"]


async def _queue_later_attempt_again(api: Api) -> None:
    """One with a lower id was requeued just now."""
    t = task_instance.c

    async def queue(uow: UnitOfWork) -> None:
        row = await uow.connection.first(select(task_instance).where(t.state == TaskState.QUEUED))
        assert row is not None
        values = {**row._mapping, "id": row.id - 1, "attempt": row.attempt + 1, "queued_at": NOW}
        await uow.connection.execute(insert(task_instance).values(**values))

    await api.store(queue)


async def test_events_that_no_alert_server_reads_are_named(api: Api) -> None:
    await api.publish()
    await api.run()

    async def begin(uow: UnitOfWork) -> None:
        rule = {"when": ["instance_failed"]}
        await uow.alert_definitions.put("default", DefinitionKind.RULE, "r", rule, NOW)
        await uow.connection.execute(update(alert_job).values(position=1))
        await uow.connection.execute(update(event).values(at=LONG_AGO))

    await api.store(begin)
    found = (await _findings(api))["health.alerts_lag"]
    assert found["arguments"]["age_s"] >= 4 * 3600
    await api.store(lambda uow: uow.alert_definitions.delete("default", DefinitionKind.RULE, "r"))
    assert await _findings(api) == {}  # nobody has to read them
    await api.store(begin)

    async def read(uow: UnitOfWork) -> None:
        await uow.connection.execute(update(alert_job).values(position=2**40))

    await api.store(read)
    assert await _findings(api) == {}


async def test_a_partition_that_was_not_purged_for_long_is_named(api: Api) -> None:
    async def purged(uow: UnitOfWork) -> None:
        await uow.connection.execute(update(partition).values(purged_at=NOW))
        one = update(partition).where(partition.c.number == 1)
        await uow.connection.execute(one.values(purged_at=LONG_AGO))

    await api.store(purged)
    assert await _findings(api) == {}  # the cluster has just been switched on
    async with _master(api, periods={"purge_s": 4 * 3600.0}):
        assert await _findings(api) == {}
    for periods in ({}, {"purge_s": 900}, {"purge_s": 10**400}, {"purge_s": "often"}, [1]):
        async with _master(api, periods=periods):
            found = (await _findings(api))["health.purge_age"]
            assert found["arguments"]["age_s"] >= 4 * 3600
            assert "purge_age_limit_s" in found["text"]
    await api.store(lambda uow: uow.backlogs.note_purge([1], NOW))
    assert await _findings(api) == {}


async def test_an_old_export_of_the_history_is_named(api: Api) -> None:
    async def verified(uow: UnitOfWork, at: Any = LONG_AGO) -> None:
        await uow.verified_history.note_trouble("none", NOW)
        values = {"trouble": None, "trouble_since": None, "verified_at": at}
        await uow.connection.execute(update(history_verified).values(**values))

    await api.store(verified)
    assert await _findings(api) == {}  # the cluster has just been switched on
    async with _master(api, periods={"export_s": 4 * 3600.0}):
        assert await _findings(api) == {}
    async with _master(api, periods={"export_s": 900.0}):
        found = (await _findings(api))["health.export_lag"]
        assert found["arguments"]["age_s"] >= 4 * 3600
        assert "export_age_limit_s" in found["text"]
        await api.store(lambda uow: verified(uow, text("'soon'")))
        assert await _findings(api) == {}  # when it was cannot be read


async def test_a_trouble_of_the_export_is_named_at_once(api: Api) -> None:
    async def verified(uow: UnitOfWork) -> None:
        await uow.verified_history.note_trouble("the bucket is read-only", NOW)
        values = {"verified_at": datetime.now(UTC) - timedelta(seconds=5)}
        await uow.connection.execute(update(history_verified).values(**values))

    await api.store(verified)
    found = (await _findings(api))["health.export_lag"]
    assert found["arguments"]["trouble"] == "the bucket is read-only"
    assert found["arguments"]["age_s"] < 3600
    assert "the bucket is read-only" in found["text"]
    cluster, store = api.services.cluster, api.services.store
    for limit_s, is_exported, count in ((3600, True, 1), (0, True, 0), (3600, False, 0)):
        changed = api.services.settings.model_copy(update={"export_age_limit_s": limit_s})
        told = await find_backlogs(store, cluster, changed, is_exported=is_exported)
        assert len(told) == count, "a cluster that exports nothing, or wants no limit, is in order"


async def test_writes_of_an_owner_that_stay_refused_are_named(api: Api) -> None:
    since = NOW.isoformat()
    async with _master(api, fenced_since=since):
        found = (await _findings(api))["health.fenced"]
        assert found["arguments"] == {"master": "m1", "since": since}
        assert f"since {since}; if that lasts, restart this master" in found["text"]


@pytest.mark.parametrize("since", [None, "", 1.5, True, [], {"at": 1}, "x" * 10_000])
async def test_what_a_master_tells_of_refused_writes_can_be_anything(api: Api, since: Any) -> None:
    async with _master(api, fenced_since=since):
        found = await _findings(api)
    if isinstance(since, str) and since:
        assert found["health.fenced"]["arguments"] == {"master": "m1", "since": since[:40]}
    else:
        assert found == {}


async def test_a_database_that_has_lost_commits_is_named(api: Api) -> None:
    at = NOW.isoformat()
    async with _master(api, lost_commits_at=at):
        found = (await _findings(api))["health.lost_commits"]
    assert found["arguments"] == {"at": at}
    assert f"lacks commits that it had stored before {at}" in found["text"]


@pytest.mark.parametrize("at", [None, "", 1.5, True, [], {"at": 1}])
async def test_what_a_master_tells_of_lost_commits_can_be_anything(api: Api, at: Any) -> None:
    async with _master(api, lost_commits_at=at):
        assert await _findings(api) == {}


async def test_a_weekly_purge_and_clocks_that_differ_by_seconds_are_in_order(api: Api) -> None:
    day_s = 86_400.0

    async def state(uow: UnitOfWork, purged_at: datetime) -> None:
        await uow.connection.execute(update(partition).values(purged_at=purged_at))
        rule = {"when": ["instance_failed"]}
        await uow.alert_definitions.put("default", DefinitionKind.RULE, "r", rule, NOW)
        await uow.connection.execute(update(event).values(at=NOW + timedelta(seconds=20)))
        await uow.verified_history.note_trouble("none", NOW)
        values = {"trouble": None, "verified_at": NOW + timedelta(seconds=20)}
        await uow.connection.execute(update(history_verified).values(**values))

    periods = {"purge_s": 7 * day_s, "export_s": 900.0}
    began = (NOW - timedelta(days=60)).isoformat()
    async with _master(api, started_at=began, periods=periods):
        await api.store(lambda uow: state(uow, NOW - timedelta(days=8)))
        assert await _findings(api) == {}
        await api.store(lambda uow: state(uow, NOW - timedelta(days=15)))
        assert set(await _findings(api)) == {"health.purge_age"}


async def test_skipped_items_degrade_the_cluster(api: Api) -> None:
    item = QuarantinedItem(
        kind=ItemKind.EVENT,
        item="1",
        partition=None,
        reason="cannot be read",
        tries=1,
        since=LONG_AGO,
        consumer=ItemConsumer.ALERTS,
        is_skipped=True,
    )
    await api.store(lambda uow: uow.quarantine.note(item))
    assert (await _findings(api))["health.skipped"]["arguments"] == {"skipped": 1}


async def test_an_event_loop_that_stands_still_is_named(api: Api) -> None:
    api.services.cluster.lag.delays.note(time.monotonic(), 40.0)
    found = (await _findings(api))["health.loop_lag"]
    assert found["arguments"] == {"process": "this API process", "lag_s": 40.0}


@pytest.mark.parametrize("lag_s", [10**400, -1, True, "long", [60.0], 60.0])
async def test_lags_that_masters_tell_can_be_anything(api: Api, lag_s: Any) -> None:
    async with _master(api, loop_lag_s=lag_s):
        found = await _findings(api)
    assert ("health.loop_lag" in found) is (lag_s == 60.0)


async def test_longest_steps_are_named_and_degrade_nothing(api: Api) -> None:
    api.services.cluster.lag.steps.note(time.monotonic(), 0.25)
    steps = {"longest_step_s": 0.5, "longest_step_ever_s": 40.0}
    async with _master(api, **steps):
        before = (await api.client.get(f"{PREFIX}/health")).json()
    (first, second) = before["longest_steps"]
    assert first["process"].startswith("master ")
    assert (first["recent_s"], first["ever_s"]) == (0.5, 40.0)
    assert second["process"] == "this API process"
    assert 0.25 <= second["recent_s"] <= second["ever_s"]
    assert "health.loop_lag" not in {one["code"] for one in before["findings"]}


@pytest.mark.parametrize("length_s", [10**400, -1, True, "long", [60.0]])
async def test_steps_that_masters_tell_can_be_anything(api: Api, length_s: Any) -> None:
    async with _master(api, longest_step_s=length_s, longest_step_ever_s=length_s):
        found = (await api.client.get(f"{PREFIX}/health")).json()["longest_steps"]
    assert [one["process"] for one in found] == ["this API process"]
