"""Health, members, partitions, queues, task types."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shoal.api.services import Services
from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.cluster_clock import read_clocks
from shoal.coordination.cluster.membership import Membership
from shoal.coordination.cluster.own_clock import OwnClock
from shoal.coordination.queue.entry import QueueEntry
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.timing.cluster_time import ClockReading
from shoal.runtime.settings import ClusterSettings
from shoal.sql import UnitOfWork
from shoal.sql.errors import DatabaseUnavailable
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PARTITIONS, PREFIX, Api, problem_of
from tests.integration.api.fake_worker import seen
from tests.support.waiting import DEADLINE_S

STARTED = "2026-11-21T06:00:00+00:00"


async def test_a_cluster_without_members_is_degraded(api: Api) -> None:
    found = (await api.client.get(f"{PREFIX}/health")).json()
    assert found["status"] == "degraded"
    assert found["checks"] == {
        "database": {"ok": True, "detail": "sqlite answers and stores"},
        "zookeeper": {"ok": True, "detail": "connected"},
        "partitions": {"ok": True, "detail": f"{PARTITIONS} partitions are owned, or soon will be"},
        "commands": {"ok": True, "detail": "none has been pending for more than 30 s"},
        "worker_groups": {
            "ok": True,
            "detail": "no task waits for a worker group without workers",
        },
        "masters": 0,
        "workers": 0,
        "paused_workers": 0,
        "set_aside": 0,
        "damaged_znodes": 0,
    }
    assert found["version"]
    assert (await api.client.get(f"{PREFIX}/health/ready")).status_code == 200


async def test_tasks_without_workers_are_reported(api: Api) -> None:
    queue = api.services.cluster.queue
    await queue.put([QueueEntry("gpu", 2, 1, 2, 9, 0), QueueEntry("gpu", 2, 1, 2, 10, 0)])
    health = (await api.client.get(f"{PREFIX}/health")).json()
    assert health["checks"]["worker_groups"]["ok"]  # its worker may be about to come back
    api.services.cluster.lonely.since_s["gpu"] -= 31.0
    check = (await api.client.get(f"{PREFIX}/health")).json()["checks"]["worker_groups"]
    assert not check["ok"]
    assert check["detail"] == (
        "tasks wait for worker groups without workers: gpu (2); start workers, for example "
        "`shoal worker --group gpu`"
    )
    async with Membership(
        api.services.cluster.session, layout.WORKERS, "w1", {"group": "gpu", "slots": 1}
    ):
        await seen(api.services, "w1", present=True)
        health = (await api.client.get(f"{PREFIX}/health")).json()
        assert health["checks"]["worker_groups"]["ok"]
        assert not api.services.cluster.lonely.since_s


async def test_a_complete_cluster_is_healthy_and_shown(api: Api) -> None:
    session = api.services.cluster.session
    async with AsyncExitStack() as stack:
        master = {"address": "127.0.0.1:1", "host": "h", "pid": 1, "started_at": STARTED}
        worker = {**master, "group": "g", "slots": 4, "running": 2, "paused": "its disk is full"}
        worker["unreachable"] = ["127.0.0.1:1"]
        worker["logs_not_archived"] = "the archive is away"
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
        async for view in api.services.cluster.masters.changes():
            if "m1" in view:
                break
        await api.services.cluster.queue.put(
            [QueueEntry("g", 2, 1, 2, 7, 0), QueueEntry("g", 2, 1, 2, 8, 0)]
        )
        health = (await api.client.get(f"{PREFIX}/health")).json()
        assert (health["status"], health["masters"], health["workers"]) == ("ok", 1, 2)
        found = (await api.client.get(f"{PREFIX}/cluster")).json()

        async def listed(path: str) -> list[dict[str, object]]:
            answer = await api.client.get(f"{PREFIX}{path}")
            assert answer.status_code == 200, answer.text
            assert answer.json()["next"] is None
            return list(answer.json()["items"])

        assert await listed("/masters") == found["masters"]
        assert await listed("/workers") == found["workers"]
        assert await listed("/workers?group=g&paused=true") == found["workers"][1:]
        assert await listed("/workers?paused=false") == found["workers"][:1]
        assert await listed("/partitions") == found["partitions"]
        assert await listed("/partitions?owner=m1") == found["partitions"][2:3]
        assert len(await listed("/partitions?owner=")) == PARTITIONS - 1
        assert await listed("/worker-groups") == [
            {"group": "", "queued": 0, "workers": 1, "paused": 0, "slots": 0, "running": 0},
            {"group": "g", "queued": 2, "workers": 1, "paused": 1, "slots": 4, "running": 2},
        ]
        for path in ("/workers", "/partitions", "/worker-groups"):
            whole, cursor = await listed(path), ""
            pages: list[object] = []
            while len(pages) <= len(whole):
                part = (await api.client.get(f"{PREFIX}{path}?limit=1{cursor}")).json()
                pages += part["items"]
                if part["next"] is None:
                    break
                cursor = f"&cursor={part['next']}"
            assert pages == whole
    time = "2026-11-21T06:00:00Z"
    assert found["masters"] == [
        {
            "id": "m1",
            "address": "127.0.0.1:1",
            "host": "h",
            "started_at": time,
            "partitions": [2],
            "leads": False,
            "database": None,
            "clock_ahead_s": None,
            "given_up": None,
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
        "unreachable": ["127.0.0.1:1"],
        "logs_not_archived": "the archive is away",
        "clock_ahead_s": None,
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
    assert found["database"]["kind"] == "sqlite"
    assert 0 < found["zookeeper"]["latency_s"] < DEADLINE_S
    assert 0 < found["database"]["latency_s"] < DEADLINE_S


async def test_takeovers_are_listed_newest_first(api: Api) -> None:
    for epoch, owner in ((5, "m1"), (5, "m1"), (9, "m2")):
        await api.store(
            lambda uow, epoch=epoch, owner=owner: uow.partitions.raise_epochs(  # type: ignore[misc]
                {1: epoch, 2: epoch}, owner
            )
        )
    page = (await api.client.get(f"{PREFIX}/takeovers?limit=3")).json()
    rest = (await api.client.get(f"{PREFIX}/takeovers?cursor={page['next']}")).json()
    found = [
        (one["partition"], one["epoch"], one["owner"], one["previous_owner"])
        for one in page["items"] + rest["items"]
    ]
    assert found == [(2, 9, "m2", "m1"), (1, 9, "m2", "m1"), (2, 5, "m1", None), (1, 5, "m1", None)]
    assert rest["next"] is None


async def test_without_zookeeper_the_api_is_not_ready_and_says_why(
    api: Api, services: Services
) -> None:
    await services.cluster.session.__aexit__(None, None, None)
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


async def test_masters_without_the_database_are_named(api: Api) -> None:
    silent = {"answers": False, "breaker": "open", "since": STARTED}
    session = api.services.cluster.session
    said = {
        "m1": {**silent, "shares": False},
        "m2": {"answers": True, "breaker": "closed", "since": None, "shares": True},
        "m3": {**silent, "breaker": "closed", "shares": True},
        "odd": "soon",
    }
    async with AsyncExitStack() as stack:
        for member, database in said.items():
            membership = Membership(session, layout.MASTERS, member, {"database": database})
            await stack.enter_async_context(membership)
        async for view in api.services.cluster.masters.changes():
            if view.keys() == said.keys():
                break
        health = (await api.client.get(f"{PREFIX}/health")).json()
        found = (await api.client.get(f"{PREFIX}/cluster")).json()
    assert health["status"] == "degraded"
    since = "the database does not answer since 2026-11-21 06:00:00 UTC"
    first, second = (
        f"{since}; its partitions were given to m2, m3",
        f"{since}; it keeps its partitions",
    )
    assert health["master_troubles"] == [f"master m1: {first}", f"master m3: {second}"]
    assert [one["database"] for one in found["masters"]] == [first, None, second, None]


async def test_task_types_show_their_parameters(api: Api) -> None:
    found = {
        item["name"]: item
        for item in (await api.client.get(f"{PREFIX}/task-types")).json()["items"]
    }
    assert {"SHELL", "PYTHON", "SPARK"} <= found.keys()
    schema = found["SHELL"]["params_schema"]
    assert {"script", "file"} <= schema["properties"].keys()
    assert schema["additionalProperties"] is False


async def test_task_types_say_how_forms_edit_their_parameters(api: Api) -> None:
    items = (await api.client.get(f"{PREFIX}/task-types")).json()["items"]
    fields = {item["name"]: item["params_schema"]["properties"] for item in items}
    script = fields["SHELL"]["script"]["anyOf"][0]
    assert script == {"type": "string", "x-editor": "script"}
    assert fields["SHELL"]["file"]["x-ref"] == "resource"
    source = fields["SSH"]["data_source"]
    assert (source["x-ref"], source["x-kinds"]) == ("data-source", ["ssh"])
    assert fields["SQL"]["data_source"]["x-kinds"] == [], "all kinds fit"
    assert "x-editor" not in fields["SHELL"]["arguments"]


async def test_cluster_is_shown_without_the_database(
    api: Api, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> None:
        raise DatabaseUnavailable("no connection")

    monkeypatch.setattr(services.store.database, "unit_of_work", away)
    found = (await api.client.get(f"{PREFIX}/cluster")).json()
    assert found["backlog"] is None
    nothing = {"open_instances": None, "pending_commands": None}
    assert found["partitions"][0] == {"index": 0, "owner": None, "epoch": 0, **nothing}
    assert found["zookeeper"]["state"] == "CONNECTED"


async def test_damaged_znodes_are_shown_and_hide_nothing_else(api: Api) -> None:
    session = api.services.cluster.session
    await session.create(znodes.group("masters"), b"\xff\x00 not json", makepath=True)
    junk = f"{layout.WORKERS}/junk"
    await session.create(junk, b"{}")  # no session holds it: nobody's registration
    async with asyncio.timeout(DEADLINE_S):
        while not (await api.client.get(f"{PREFIX}/health")).json()["checks"]["damaged_znodes"]:
            await asyncio.sleep(0.05)
    found = (await api.client.get(f"{PREFIX}/cluster")).json()
    assert found["group"]["state"] == "Empty"
    assert [(each["path"], each["size"]) for each in found["damaged_znodes"]] == [(junk, 2)]
    assert found["damaged_znodes"][0]["reason"]


async def test_clocks_that_are_off_are_named_and_degrade_nothing(api: Api) -> None:
    session = api.services.cluster.session

    def an_hour_ahead() -> ClockReading:
        true = read_clocks()
        return ClockReading(true.wall_s + 3600.0, true.since_boot_s)

    async with (
        Membership(session, layout.MASTERS, "right", {}),
        Membership(session, layout.MASTERS, "odd", {"clock_ahead_s": "a lot"}),
        Membership(session, layout.WORKERS, "wrong", {}, clock=OwnClock(an_hour_ahead)) as wrong,
    ):
        await wrong.update({"load": 1})
        async for view in api.services.cluster.workers.changes():
            if any(worker.clock_ahead_s for worker in view.values()):
                break
        health = (await api.client.get(f"{PREFIX}/health")).json()
        found = (await api.client.get(f"{PREFIX}/cluster")).json()
    [difference] = health["clock_differences"]
    assert difference["clock"] == "worker wrong"
    assert difference["ahead_s"] == pytest.approx(3600.0, abs=60.0)
    assert not any("clock" in trouble for trouble in health["master_troubles"])
    assert found["workers"][0]["clock_ahead_s"] == difference["ahead_s"]
    assert {master["clock_ahead_s"] for master in found["masters"]} == {None}


async def test_others_than_administrators_are_told_that_and_not_why(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: dict[str, str] = {}

    async def sign_up(uow: UnitOfWork) -> None:
        now = datetime.now(UTC)
        for name in ("ada", "boss"):
            found = await account(uow, name, now, is_admin=name == "boss")
            texts[name] = (await token(uow, found, now))[1]

    await api.store(sign_up)

    async def refuse(_: object) -> None:
        raise DatabaseUnavailable("no route to db7.inside.example")

    session = api.services.cluster.session
    said = {"database": {"answers": False, "since": STARTED}}
    async with Membership(session, layout.MASTERS, "m1@host9", said):
        async with asyncio.timeout(DEADLINE_S):
            while not api.services.cluster.masters.current():
                await asyncio.sleep(0.01)
        answers = {}
        for name in texts:  # who it is, is remembered from here on
            assert (await api.client.get(f"{PREFIX}/me", headers=bearer(texts[name]))).is_success
        monkeypatch.setattr(type(api.services.store.database), "ping", refuse)
        for name in texts:
            for path, status in (("health", 200), ("health/ready", 503)):
                answer = await api.client.get(f"{PREFIX}/{path}", headers=bearer(texts[name]))
                assert answer.status_code == status
                answers[name] = answer
    for told in ("db7.inside.example", "host9"):
        assert told in answers["boss"].text
        assert told not in answers["ada"].text
    shown, whole = answers["ada"].json(), answers["boss"].json()
    assert shown["status"] == whole["status"] == "degraded"
    assert shown["checks"]["database"] == {
        "ok": False,
        "detail": "does not work; an administrator sees why",
    }
    assert shown["checks"]["zookeeper"] == {"ok": True, "detail": "works"}
    assert (shown["masters"], shown["master_troubles"]) == (1, [])


async def test_what_is_quarantined_is_told_with_reasons_to_administrators(api: Api) -> None:
    now = api.services.store.clock()
    skipped = QuarantinedItem(
        ItemKind.EVENT,
        "17",
        None,
        "why",
        1,
        now,
        ItemConsumer.ALERTS,
        "p",
        "daily",
        now,
        is_skipped=True,
    )
    held = replace(skipped, kind=ItemKind.WORKFLOW, item="p/daily", is_skipped=False)
    async with api.services.store.unit_of_work() as uow:
        for one in (skipped, held, held):
            await uow.quarantine.note(one)
        await uow.commit()
    found = (await api.client.get(f"{PREFIX}/health")).json()
    assert found["quarantine"] is not None
    assert (found["quarantine"]["held"], found["quarantine"]["skipped"]) == (1, 1)
    newest = {one["kind"]: one for one in found["quarantine"]["newest"]}
    assert (newest["event"]["reason"], newest["event"]["project"]) == ("why", "p")
    assert (newest["workflow"]["tries"], newest["workflow"]["consumer"]) == (2, "alerts")
    assert found["checks"]["set_aside"] == 0  # masters have quarantined nothing
    cluster = (await api.client.get(f"{PREFIX}/cluster")).json()
    assert cluster["set_aside"] == []
