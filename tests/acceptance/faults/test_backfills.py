"""A month of dates, four at a time: each runs once, whatever dies meanwhile."""

import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import pid_of, shared_out, watched
from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S

DAYS = [f"2026-06-{day:02d}" for day in range(1, 31)]
PARALLEL = 4


def ask(rest: Rest, workflow: str, **fields: Any) -> int:
    """Ask for a backfill of the month; return its id."""
    body = {"workflow": workflow, "from": DAYS[0], "to": DAYS[-1], **fields}
    answer = rest.http.post("/backfills", json=body)
    assert answer.status_code == 202, answer.text
    outcome = rest.outcome(answer.json()["command"]["id"])
    assert outcome["state"] == "DONE", outcome
    return int(outcome["backfill_id"])


def request(rest: Rest, backfill_id: int, what: str) -> None:
    answer = rest.http.post(f"/backfills/{backfill_id}/{what}")
    assert answer.status_code == 202, answer.text
    assert rest.outcome(answer.json()["id"])["state"] == "DONE"


def counts(rest: Rest, backfill_id: int) -> dict[str, int]:
    found: dict[str, int] = rest.get(f"/backfills/{backfill_id}")["counts"]
    return found


def wait_for(rest: Rest, backfill_id: int) -> Any:
    """Wait until a backfill has ended."""
    return rest.until(
        lambda: rest.get(f"/backfills/{backfill_id}"),
        lambda seen: seen["state"] in ("SUCCEEDED", "FAILED", "CANCELLED"),
        timeout_s=2 * DEADLINE_S,
    )


def owner_of(cluster: LocalCluster, rest: Rest, backfill_id: int) -> int:
    """The process that moves a backfill on; the API keeps its partition to itself."""
    with closing(sqlite3.connect(cluster.data / "shoal.db")) as database:
        query = "SELECT partition FROM backfill WHERE id = ?"
        ((partition,),) = database.execute(query, [backfill_id]).fetchall()
    masters = rest.get("/cluster")["masters"]
    return next(pid_of(one) for one in masters if partition in one["partitions"])


def most_at_once(ledger: list[str]) -> int:
    """How many dates ran at the same time, by the order in which their tasks wrote."""
    running = most = 0
    for line in ledger:
        running += 1 if line.startswith("start") else -1
        most = max(most, running)
    return most


def test_a_month_is_paused_resumed_and_outlives_the_death_of_its_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    ledger = tmp_path / "ledger"
    gate = tmp_path / "gate"
    write = f"echo {{}} $[yyyy-MM-dd] >> '{ledger}'; sleep 0.1"
    # The later dates do not end before the pause, however busy the machine is.
    wait = f"[ $[dd] -le 12 ] || until [ -e '{gate}' ]; do sleep 0.1; done; "
    with (
        LocalCluster(tmp_path / "data", workers=1, slots=8, api_port=free_port()) as running,
        watched(running),
        closing(Rest(running.url, running.token)) as rest,
    ):
        shared_out(rest, [64, 64])
        rest.publish(
            "month",
            {
                "first": {"script": write.format("start")},
                "second": {"script": wait + write.format("end"), "depends_on": ["first"]},
            },
        )
        rest.publish("fragile", {"only": {"script": "[ $[dd] -lt 3 ]"}})
        month = ask(rest, "month", parallel=PARALLEL)
        serial = ask(rest, "fragile")
        rest.until(lambda: counts(rest, month), lambda seen: seen.get("SUCCEEDED", 0) >= 6)
        request(rest, month, "pause")
        gate.touch()
        quiet = rest.until(lambda: counts(rest, month), lambda seen: "STARTED" not in seen)
        assert quiet["WAITING"] + quiet["SUCCEEDED"] == 30
        assert quiet["WAITING"] > 0
        assert len(ledger.read_text().splitlines()) == 2 * quiet["SUCCEEDED"]
        request(rest, month, "resume")
        rest.until(
            lambda: counts(rest, month),
            lambda seen: seen["SUCCEEDED"] >= quiet["SUCCEEDED"] + 2,
        )
        os.kill(owner_of(running, rest, month), signal.SIGKILL)
        ended = wait_for(rest, month)
        assert (ended["state"], ended["counts"]) == ("SUCCEEDED", {"SUCCEEDED": 30})
        instances = rest.get("/instances", workflow="month", limit=100)["items"]
        failed = wait_for(rest, serial)
        runs = rest.get(f"/backfills/{serial}/runs", limit=100)["items"]
    written = ledger.read_text().splitlines()
    assert Counter(written) == Counter(f"{word} {day}" for day in DAYS for word in ("start", "end"))
    assert most_at_once(written) <= PARALLEL
    assert sorted(one["logical_time"] for one in instances) == [f"{d}T00:00:00Z" for d in DAYS]
    # One after the other, the first that does not succeed ends it.
    assert failed["state"] == "FAILED"
    assert [run["state"] for run in runs] == [
        *["SUCCEEDED"] * 2,
        "FAILED",
        *["CANCELLED"] * 27,
    ]
