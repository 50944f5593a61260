"""Purges over REST: what is asked for is stored; the answer is small whatever there is to go."""

from datetime import UTC, datetime, timedelta

from shoal.api.operations.logs import why_deleted
from shoal.sql import UnitOfWork
from shoal.sql.repositories.upkeep.purges import PurgePart
from tests.integration.api.conftest import PARTITIONS, PREFIX, Api, fields_of, problem_of

PURGES = f"{PREFIX}/purges"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


async def test_purge_is_stored_with_a_part_for_each_partition(api: Api) -> None:
    await api.publish("daily", "p")
    body = {"dry_run": True, "before": "2026-01-01T00:00:00Z", "project": "p", "workflow": "daily"}
    answer = await api.client.post(PURGES, json=body)
    assert answer.status_code == 202, answer.text
    asked = answer.json()
    assert (asked["dry_run"], asked["before"]) == (True, "2026-01-01T00:00:00Z")
    assert (asked["partitions"], asked["partitions_done"]) == (PARTITIONS, 0)
    assert asked["finished_at"] is None

    async def work(uow: UnitOfWork) -> None:
        part = PurgePart({"instances": 3, "attempts": 6}, NOW)
        await uow.purges.note(asked["id"], {1: part, 2: PurgePart({"instances": 1})})
        await uow.purges.finish(asked["id"], range(PARTITIONS - 1), NOW)

    await api.store(work)
    seen = (await api.client.get(f"{PURGES}/{asked['id']}")).json()
    assert (seen["instances"], seen["attempts"], seen["partitions_done"]) == (4, 6, PARTITIONS - 1)
    assert (seen["oldest"], seen["finished_at"]) == ("2026-03-01T00:00:00Z", None)

    async def end(uow: UnitOfWork) -> None:
        await uow.purges.finish(asked["id"], range(PARTITIONS), NOW + timedelta(seconds=1))

    await api.store(end)
    [listed] = (await api.client.get(PURGES)).json()["items"]
    assert listed["finished_at"] == "2026-03-01T00:00:01Z"


async def test_what_cannot_be_meant_is_refused(api: Api) -> None:
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    refused = await api.client.post(PURGES, json={"before": later})
    assert "before" in fields_of(problem_of(refused, 422, "invalid-request"))
    refused = await api.client.post(PURGES, json={"workflow": "daily"})
    assert "project" in fields_of(problem_of(refused, 422, "invalid-request"))
    refused = await api.client.post(PURGES, json={"older_than": "3d"})
    assert "older_than" in fields_of(problem_of(refused, 422, "invalid-request"))
    problem_of(await api.client.post(PURGES, json={"project": "none"}), 404, "not-found")
    problem_of(await api.client.get(f"{PURGES}/99"), 404, "not-found")
    assert (await api.client.get(PURGES)).json()["items"] == []


async def test_stores_tell_how_large_they_are(api: Api) -> None:
    found = (await api.client.get(f"{PREFIX}/stores")).json()
    assert found["kind"] == "sqlite"
    assert found["bytes"] > found["free_bytes"] >= 0
    assert {"event", "command", "workflow_instance"} <= {one["name"] for one in found["stores"]}


def test_why_a_log_is_not_there_is_told_by_its_worker() -> None:
    old, young = NOW - timedelta(days=31), NOW - timedelta(days=3)
    told = {"log_retention_days": 30.0}
    assert why_deleted(told, old, NOW) == "after 30 days by log_retention_days"
    assert why_deleted(told, young, NOW) is None
    until = {**told, "logs_deleted_until": (NOW - timedelta(days=2)).isoformat()}
    assert "nearly full" in str(why_deleted(until, young, NOW))
    assert why_deleted(until, NOW - timedelta(days=1), NOW) is None
    for junk in (
        {},
        {"log_retention_days": "x", "logs_deleted_until": 3},
        {"log_retention_days": 0},
    ):
        assert why_deleted(junk, old, NOW) is None
