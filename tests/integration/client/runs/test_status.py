"""``shoal status``: what it says of a cluster in all its conditions."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.client.conftest import Shoal
from tests.integration.client.scripted_server import (
    Answer,
    Request,
    ScriptedServer,
    scripted_server,
)

MASTERS = ["host-name-4711-a512484a", "host-name-4712-8c65e866"]
WORKER = "worker-1-1-b1503e51"


def cluster(**changes: Any) -> dict[str, Any]:
    """What the API says of two masters with 128 partitions, 40 of them without an owner."""
    owned = {master: list(range(index, 88, 2)) for index, master in enumerate(MASTERS)}
    return {
        "masters": [
            {
                "id": master,
                "address": "127.0.0.1:40001",
                "host": "host",
                "started_at": "2026-03-01T06:00:00Z",
                "partitions": owned[master],
                "leads": index == 1,
            }
            for index, master in enumerate(MASTERS)
        ],
        "workers": [
            {
                "id": WORKER,
                "group": "default",
                "address": "127.0.0.1:40002",
                "host": "host",
                "slots": 4,
                "running": 3,
                "started_at": "2026-03-01T06:00:00Z",
                "paused": None,
            }
        ],
        "group": {
            "state": "PreparingRebalance",
            "generation": 17,
            "leader": MASTERS[1],
            "members": MASTERS,
        },
        "partitions": [
            {
                "index": index,
                "owner": MASTERS[index % 2] if index < 88 else None,
                "epoch": 4294967300 + index if index < 88 else 0,
                "open_instances": 1500 if index == 5 else 0,
                "pending_commands": 12 if index == 100 else 0,
            }
            for index in range(128)
        ],
        "backlog": {
            "pending_commands": 12,
            "open_instances": 1500,
            "queued": 1234567,
            "claimed": 1,
            "running": 3,
        },
        "queues": [{"group": "default", "depth": 1234560}, {"group": "gpu", "depth": 7}],
        "zookeeper": {"state": "CONNECTED", "session_timeout_s": 10.0},
        "database": {"kind": "sqlite"},
        "alert_servers": None,
        "damaged_znodes": [],
        "set_aside": [],
        **changes,
    }


HEALTH = {
    "status": "ok",
    "checks": {
        "database": {"ok": True, "detail": "sqlite answers"},
        "zookeeper": {"ok": True, "detail": "connected"},
        "partitions": {"ok": True, "detail": "4 partitions are owned, or soon will be"},
        "masters": 2,
        "workers": 1,
        "paused_workers": 0,
        "set_aside": 0,
        "damaged_znodes": 0,
    },
    "masters": 2,
    "workers": 1,
    "version": "0.1.0",
}


@pytest.fixture
def server(shoal: Shoal, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        monkeypatch.setenv("SHOAL_URL", server.url)
        monkeypatch.setenv("SHOAL_TOKEN", "secret")
        show(server, cluster())
        yield server


def show(server: ScriptedServer, found: dict[str, Any], **health: Any) -> None:
    def answer(request: Request) -> Answer:
        return Answer(200, HEALTH | health if request.path.endswith("/health") else found)

    server.answer = answer


def test_rebalance_backlog_and_missing_owners_are_seen(
    shoal: Shoal, server: ScriptedServer
) -> None:
    shown = shoal("status")
    assert shown.status == 0
    lines = shown.out.splitlines()
    assert "✗ 88 of 128 partitions have an owner" in lines
    assert f"✗ masters: generation 17, PreparingRebalance, led by {MASTERS[1]}" in lines
    assert (
        "1,500 open instances; tasks: 1,234,567 queued, 1 claimed, 3 running; 12 commands pending"
    ) in lines
    first, second = (next(line for line in lines if line.startswith(each)) for each in MASTERS)
    assert first.split()[1:5] == ["127.0.0.1:40001", "44", "4294967386", "0"]
    assert second.split()[1:6] == ["leader", "127.0.0.1:40001", "44", "4294967387", "1,500"]
    assert len(lines) < 20  # not a line for each partition


def test_partitions_are_listed_on_request(shoal: Shoal, server: ScriptedServer) -> None:
    rows = [line.split() for line in shoal("status", "--partitions").out.splitlines()]
    assert ["5", MASTERS[1], "4294967305", "1,500"] in rows
    assert ["100", "no", "owner", "12"] in rows
    assert sum(1 for row in rows if row[1:3] == ["no", "owner"]) == 40


def test_worker_that_takes_no_tasks_says_why(shoal: Shoal, server: ScriptedServer) -> None:
    found = cluster()
    found["workers"][0]["paused"] = "the disk of /data has 7 MiB left"
    show(server, found)
    assert f"✗ {WORKER} takes no tasks: the disk of /data has 7 MiB left" in shoal("status").out


def test_worker_that_cannot_reach_a_master_is_shown(shoal: Shoal, server: ScriptedServer) -> None:
    found = cluster()
    found["workers"][0]["unreachable"] = ["127.0.0.1:40001", "10.0.0.9:1"]
    found["masters"][1]["address"] = "127.0.0.1:40009"
    show(server, found)
    shown = f"{MASTERS[0]} (127.0.0.1:40001), 10.0.0.9:1: takes none of its tasks"
    assert f"✗ {WORKER} cannot reach master {shown}" in shoal("status").out


def test_clocks_that_are_off_are_named_but_no_failure(shoal: Shoal, server: ScriptedServer) -> None:
    off = [
        {"clock": f"worker {WORKER}", "ahead_s": -3600.2},
        {"clock": "the database", "ahead_s": 12.0},
    ]
    show(server, cluster(), clock_differences=off)
    done = shoal("status")
    assert f"the clock of worker {WORKER} is 3,600.2 s behind: synchronise it" in done.out
    assert "the clock of the database is 12.0 s ahead" in done.out


def test_members_are_shown_without_the_database(shoal: Shoal, server: ScriptedServer) -> None:
    found = cluster(backlog=None)
    for part in found["partitions"]:
        part |= {"open_instances": None, "pending_commands": None}
    show(server, found)
    shown = shoal("status", "--partitions").out
    assert "✗ backlog unknown: the database cannot be reached" in shown
    assert WORKER in shown


def test_json_is_complete(shoal: Shoal, server: ScriptedServer) -> None:
    found = shoal("status", "--json").json
    assert found == {"api": server.url, "health": HEALTH, **cluster()}


def quarantined(**fields: Any) -> dict[str, Any]:
    """An item as the API shows it."""
    return {
        "consumer": "alerts",
        "kind": "event",
        "item": "17",
        "project": "flights",
        "workflow": "daily",
        "reason": "TypeError: \x1b]0;title\x07 (occurrences.py:166)",
        "tries": 1,
        "since": "2026-11-21T06:00:00Z",
        "last_at": "2026-11-21T06:00:00Z",
        "is_skipped": True,
        **fields,
    }


def test_what_other_consumers_have_quarantined_is_shown(
    shoal: Shoal, server: ScriptedServer
) -> None:
    held = quarantined(kind="workflow", item="flights/daily", is_skipped=False, reason="why")
    newest = [quarantined(), held, quarantined(consumer="masters", item="run of masters")]
    show(server, cluster(), quarantine={"held": 2, "skipped": 1, "newest": newest})
    lines = shoal("status").out.splitlines()
    [line] = [one for one in lines if one.startswith("✗ alerts: event 17 of flights was skipped: ")]
    assert "(occurrences.py:166)" in line
    assert "\x1b" not in line
    assert "✗ alerts: workflow flights/daily of flights is quarantined: why" in lines
    assert not any("run of masters" in line for line in lines)


def test_each_finding_is_told_once(shoal: Shoal, server: ScriptedServer) -> None:
    export = {"code": "health.export_lag", "arguments": {}, "text": "the export is late"}
    groups = {"code": "health.worker_groups", "arguments": {}, "text": "tasks wait for gpu"}
    skipped = {"code": "health.skipped", "arguments": {}, "text": "1 quarantined item was skipped"}
    check = {"ok": False, "detail": "tasks wait for gpu"}
    checks: Any = HEALTH["checks"]
    aside = {"held": 0, "skipped": 1, "newest": []}
    told = {"findings": [export, groups, skipped], "quarantine": aside}
    show(server, cluster(history=None), checks={**checks, "worker_groups": check}, **told)
    said = shoal("status").out
    assert "the export is late" in said
    assert said.count("tasks wait for gpu") == 1
    assert said.count("skipped") == 1
    history = {"since": "2026-03-01T06:00:00Z", "trouble": "no room"}
    show(server, cluster(history=history), **told)
    said = shoal("status").out
    assert "no room" in said
    assert "the export is late" not in said
