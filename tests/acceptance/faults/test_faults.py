"""Processes die without warning; no task is lost, none runs twice at once, nothing hangs."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import (
    partition_of_instance,
    pid_of,
    shared_out,
    shares,
    watched,
    written,
)
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S

# A task writes when it starts and when it ends, and holds a lock meanwhile: a second one of the
# same name at the same time finds the lock taken and says so.
LEDGER = """
exec 9>"$dir/$SHOAL_TASK.lock"
flock -n 9 || echo "DOUBLE $SHOAL_TASK" >> "$dir/ledger"
echo "start $SHOAL_TASK" >> "$dir/ledger"
sleep 0.3
echo "end $SHOAL_TASK" >> "$dir/ledger"
"""
GATE = 'until [ -e "$dir/gate" ]; do sleep 0.2; done\n'


@pytest.fixture
def frail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A cluster of its own, made to be hurt."""
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    monkeypatch.setenv("SHOAL_MASTER_SWEEP_INTERVAL_S", "1")
    with (
        LocalCluster(tmp_path / "data", slots=4, api_port=free_port()) as running,
        watched(running),
    ):
        yield running


@pytest.fixture
def rest(frail: LocalCluster) -> Iterator[Rest]:
    client = Rest(frail.url, frail.token)
    yield client
    client.close()


@contextmanager
def another_master(cluster: LocalCluster) -> Iterator[subprocess.Popen[bytes]]:
    """A further master, as ``shoal master`` in another terminal."""
    log = cluster.data / "logs" / "master-added.log"
    command = [sys.executable, "-m", "shoal.client.local.roles", "master"]
    with log.open("wb") as output:
        master = subprocess.Popen(
            [*command, "--data", str(cluster.data)], stdout=output, stderr=output
        )
    try:
        yield master
    finally:
        master.terminate()
        master.wait()


def start_ledger(rest: Rest, folder: Path, tasks: int, *, gated: bool = False) -> int:
    """Start a workflow of layered tasks that keep a ledger.

    ``gated``: the last layer waits until the file "gate" is there.
    """
    scripts = [LEDGER] * (tasks - 8) + [(GATE if gated else "") + LEDGER] * 8
    rest.publish(
        "ledger",
        {
            f"t{n:02d}": {"script": script, "depends_on": [f"t{n - 8:02d}"] if n >= 8 else []}
            for n, script in enumerate(scripts)
        },
        parameters={"dir": str(folder)},
    )
    return rest.start("ledger")


@pytest.mark.parametrize("victim", ["master-1", "master-2", "api"])
def test_death_of_a_master_or_the_api_disturbs_no_task(
    frail: LocalCluster, rest: Rest, tmp_path: Path, victim: str
) -> None:
    instance_id = start_ledger(rest, tmp_path, 40)
    rest.until(lambda: written(tmp_path / "ledger"), lambda seen: len(seen) >= 8)
    before = frail.pids()[victim]
    os.kill(before, signal.SIGKILL)
    rest.until(lambda: frail.pids().get(victim), lambda pid: pid not in (None, before))
    rest.until(lambda: answers(rest), bool)
    instance = rest.wait_for(instance_id)
    assert instance["state"] == "SUCCEEDED"
    assert Counter(written(tmp_path / "ledger")) == Counter(
        f"{word} t{n:02d}" for n in range(40) for word in ("start", "end")
    )
    assert {t["attempt"] for t in rest.instance(instance_id, attempts="all")["tasks"]} == {1}


def answers(rest: Rest) -> bool:
    try:
        return bool(rest.get("/health"))
    except Exception:  # noqa: BLE001 - whatever it is, the API is not back yet
        return False


def test_tasks_of_a_killed_worker_run_again_and_never_twice_at_once(
    frail: LocalCluster, rest: Rest, tmp_path: Path
) -> None:
    instance_id = start_ledger(rest, tmp_path, 40)
    rest.until(lambda: written(tmp_path / "ledger"), lambda seen: len(seen) >= 8)
    os.kill(frail.pids()["worker-1"], signal.SIGKILL)
    instance = rest.wait_for(instance_id)
    assert instance["state"] == "SUCCEEDED"
    seen = written(tmp_path / "ledger")
    assert not [line for line in seen if line.startswith("DOUBLE")]
    assert {f"end t{n:02d}" for n in range(40)} <= set(seen)
    attempts = rest.instance(instance_id, attempts="all")["tasks"]
    lost = [a for a in attempts if a["state"] == "LOST"]
    assert len(attempts) == 40 + len(lost)


def test_zookeeper_restart_loses_nothing(frail: LocalCluster, rest: Rest, tmp_path: Path) -> None:
    instance_id = start_ledger(rest, tmp_path, 24)
    rest.until(lambda: written(tmp_path / "ledger"), lambda seen: len(seen) >= 8)
    os.kill(frail.pids()["zookeeper"], signal.SIGKILL)
    instance = rest.wait_for(instance_id)
    assert instance["state"] == "SUCCEEDED"
    assert not [line for line in written(tmp_path / "ledger") if line.startswith("DOUBLE")]


@pytest.mark.timeout(900)
def test_adding_and_removing_a_master_disturbs_no_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removed one is the one that runs the workflow."""
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", "30")  # a busy machine ends no session
    tasks = 300 if os.environ.get("CI") else 1000
    with (
        LocalCluster(tmp_path / "data", slots=4, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        before = shared_out(rest, [64, 64])
        instance_id = start_ledger(rest, tmp_path, tasks, gated=True)
        partition = partition_of_instance(running, instance_id)
        rest.until(lambda: written(tmp_path / "ledger"), lambda seen: len(seen) >= 8)
        with another_master(running) as added:
            after = shared_out(rest, [42, 43, 43])
            leaver = next(pid_of(m) for m in after["masters"] if partition in m["partitions"])
            os.kill(leaver, signal.SIGTERM)
            shared_out(rest, [64, 64], without=leaver)
            (tmp_path / "gate").touch()  # not before the masters have changed
            instance = rest.wait_for(instance_id, timeout_s=400)
            assert (leaver == added.pid) == (added.poll() is not None)
        attempts = rest.instance(instance_id, attempts="all")["tasks"]
    assert instance["state"] == "SUCCEEDED"
    assert Counter((a["attempt"], a["state"]) for a in attempts) == {(1, "SUCCEEDED"): tasks}
    assert Counter(written(tmp_path / "ledger")) == Counter(
        f"{word} t{n:02d}" for n in range(tasks) for word in ("start", "end")
    )
    epochs = [{p["index"]: p["epoch"] for p in seen["partitions"]} for seen in (before, after)]
    moved = [index for index, epoch in epochs[0].items() if epochs[1][index] != epoch]
    assert len(moved) == shares(after)[added.pid]
    [leader] = [master["id"] for master in after["masters"] if master["leads"]]
    assert after["group"]["leader"] == leader
    assert after["group"]["generation"] > before["group"]["generation"]
