"""The promise of the project in one run, for ``make quick``: nothing is lost with a worker."""

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S


def test_a_run_survives_the_kill_of_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without failover the run stays RUNNING; if the first attempt lived on, it would end twice."""
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    gate, ledger = tmp_path / "gate", tmp_path / "ledger"
    script = f'until [ -e "{gate}" ]; do sleep 0.1; done; echo end | tee -a "{ledger}"'
    tasks = {"first": {}, "second": {"script": script, "depends_on": ["first"]}}
    with (
        LocalCluster(tmp_path / "data", slots=4, api_port=free_port()) as cluster,
        closing(Rest(cluster.url, cluster.token)) as rest,
    ):
        rest.publish("quick", tasks)
        run = rest.start("quick")
        rest.until(lambda: rest.tasks(run)["second"], lambda task: task["state"] == "RUNNING")
        worker = rest.tasks(run)["second"]["worker"]
        [victim] = [pid for name, pid in cluster.pids().items() if worker.startswith(f"{name}-")]
        os.kill(victim, signal.SIGKILL)
        rest.until(lambda: rest.tasks(run)["second"]["attempt"], lambda attempt: attempt == 2)
        gate.touch()
        assert rest.wait_for(run)["state"] == "SUCCEEDED"
        attempts = rest.instance(run, attempts="all")["tasks"]
        log = rest.log(rest.tasks(run)["second"]["id"])
    assert sorted((task["task"], task["attempt"], task["state"]) for task in attempts) == [
        ("first", 1, "SUCCEEDED"),
        ("second", 1, "LOST"),
        ("second", 2, "SUCCEEDED"),
    ]
    assert log == ledger.read_text() == "end\n"
