"""Health, members, partitions, queues, task types."""

import sqlite3
from contextlib import AsyncExitStack, closing

import pytest

from shoal.api.services import Services
from shoal.coordination import layout
from shoal.coordination.membership import Membership
from shoal.coordination.queue.entry import Entry
from shoal.core.settings import ClusterSettings
from shoal.sql.errors import DatabaseUnavailable
from tests.integration.api.conftest import PARTITIONS, PREFIX, Api, problem_of
from tests.integration.api.fake_worker import seen

STARTED = "2026-11-21T06:00:00+00:00"


async def test_a_cluster_without_members_is_degraded(api: Api) -> None:
    found = (await api.client.get(f"{PREFIX}/health")).json()
    assert found["status"] == "degraded"
    assert found["checks"] == {
        "database": {"ok": True, "detail": "sqlite answers"},
        "zookeeper": {"ok": True, "detail": "connected"},
        "masters": 0,
        "workers": 0,
        "paused_workers": 0,
    }
    assert found["version"]
    assert (await api.client.get(f"{PREFIX}/health/ready")).status_code == 200


async def test_a_complete_cluster_is_healthy_and_shown(api: Api) -> None:
    session = api.services.session
    async with AsyncExitStack() as stack:
        master = {"address": "127.0.0.1:1", "host": "h", "pid": 1, "started_at": STARTED}
        worker = {**master, "group": "g", "slots": 4, "running": 2, "paused": "its disk is full"}
        await stack.enter_async_context(Membership(session, layout.MASTERS, "m1", master))
        await stack.enter_async_context(Membership(session, layout.WORKERS, "w1", worker))
        await stack.enter_async_context(
            Membership(session, layout.WORKERS, "odd", {"slots": "x", "started_at": "soon"})
        )
        owner = await session.create(
            layout.owner(2), b'{"owner_id": "m1", "address": "127.0.0.1:1"}', ephemeral=True
        )
        for member in ("w1", "odd"):
            await seen(api.services, member, present=True)
        async for view in api.services.masters.changes():
            if "m1" in view:
                break
        await api.services.queue.put([Entry("g", 2, 1, 2, 7, 0), Entry("g", 2, 1, 2, 8, 0)])
        health = (await api.client.get(f"{PREFIX}/health")).json()
        assert (health["status"], health["masters"], health["workers"]) == ("ok", 1, 2)
        found = (await api.client.get(f"{PREFIX}/cluster")).json()
    time = "2026-11-21T06:00:00Z"
    assert found["masters"] == [
        {
            "id": "m1",
            "address": "127.0.0.1:1",
            "host": "h",
            "started_at": time,
            "partitions": [2],
            "leads": False,
        }
    ]
    odd, good = found["workers"]
    assert (odd["id"], odd["slots"], odd["started_at"]) == ("odd", 0, None)
    assert good == {
        "id": "w1",
        "group": "g",
        "address": "127.0.0.1:1",
        "host": "h",
        "slots": 4,
        "running": 2,
        "started_at": time,
        "paused": "its disk is full",
    }
    assert health["checks"]["paused_workers"] == 1
    assert len(found["partitions"]) == PARTITIONS
    nothing = {"open_instances": 0, "pending_commands": 0}
    assert found["partitions"][2] == {"index": 2, "owner": "m1", "epoch": owner.czxid, **nothing}
    assert found["partitions"][0] == {"index": 0, "owner": None, "epoch": 0, **nothing}
    assert found["group"] == {"state": "Empty", "generation": 0, "leader": None, "members": []}
    assert found["backlog"] == {**nothing, "queued": 2, "claimed": 0, "running": 0}
    assert found["queues"] == [{"group": "g", "depth": 2}]
    assert found["zookeeper"]["state"] == "CONNECTED"
    assert found["database"] == {"kind": "sqlite"}


async def test_without_zookeeper_the_api_is_not_ready_and_says_why(
    api: Api, services: Services
) -> None:
    await services.session.__aexit__(None, None, None)
    answer = await api.client.get(f"{PREFIX}/health/ready")
    assert answer.status_code == 503
    assert answer.json()["checks"]["zookeeper"] == {"ok": False, "detail": "lost"}
    health = await api.client.get(f"{PREFIX}/health")
    assert (health.status_code, health.json()["status"]) == (200, "degraded")
    live = await api.client.get(f"{PREFIX}/health/live")
    assert live.json() == {"status": "ok"}
    problem_of(await api.client.get(f"{PREFIX}/cluster"), 503, "zookeeper-unavailable")
    assert (await api.client.get(f"{PREFIX}/workflows")).status_code == 200


async def test_a_locked_database_delays_nobody_who_reads(
    api: Api, cluster: ClusterSettings
) -> None:
    with closing(sqlite3.connect(cluster.data / "shoal.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        assert (await api.client.get(f"{PREFIX}/workflows")).status_code == 200
        assert (await api.client.get(f"{PREFIX}/health")).json()["checks"]["database"]["ok"]


async def test_task_types_show_their_parameters(api: Api) -> None:
    found = {item["name"]: item for item in (await api.client.get(f"{PREFIX}/task-types")).json()}
    assert {"SHELL", "PYTHON", "SPARK"} <= found.keys()
    schema = found["SHELL"]["params_schema"]
    assert "script" in schema["required"]
    assert schema["additionalProperties"] is False


async def test_cluster_is_shown_without_the_database(
    api: Api, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> None:
        raise DatabaseUnavailable("no connection")

    monkeypatch.setattr(services.database, "unit_of_work", away)
    found = (await api.client.get(f"{PREFIX}/cluster")).json()
    assert found["backlog"] is None
    nothing = {"open_instances": None, "pending_commands": None}
    assert found["partitions"][0] == {"index": 0, "owner": None, "epoch": 0, **nothing}
    assert found["zookeeper"]["state"] == "CONNECTED"
