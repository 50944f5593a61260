"""Pages that are open while the network, the API or a master go away; and pages of a reader."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.api.pages.ui import BUILT
from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.rest import Rest
from tests.acceptance.test_ui import CHROMIUM, KNOWN, NEEDED, UI, node
from tests.support.people import add_user
from tests.support.waiting import DEADLINE_S

_NEED = "You need the role {} in default. An owner of the project can give it."


@contextmanager
def watched(cluster: LocalCluster) -> Iterator[None]:
    """Start again what ends, as the supervisor of ``shoal up`` does."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            cluster.watch()
            time.sleep(0.1)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_what_is_watched_survives_what_goes_away(tmp_path: Path) -> None:
    if CHROMIUM is None or not (BUILT / "index.html").is_file():
        pytest.skip(NEEDED)
    program = node()
    with LocalCluster(tmp_path / "data", slots=8, api_port=free_port()) as cluster:
        rest = Rest(cluster.url, cluster.token)
        gates = [str(tmp_path / f"gate-{n}") for n in range(3)]
        runs = []
        for n, gate in enumerate(gates):
            rest.publish(
                f"gated{n}", {"wait": {"script": f"until test -e '{gate}'; do sleep 0.1; done"}}
            )
            runs.append(rest.start(f"gated{n}"))
        password = add_user(rest.http, "uma", is_admin=True)
        add_user(rest.http, "rosa")
        role = rest.http.put("/projects/default/members/user/rosa", json={"role": "reader"})
        assert role.status_code == 201, role.text
        there = {
            "pids": cluster.pids(),
            "gates": gates,
            "runs": runs,
            "admin": "uma",
            "reader": "rosa",
            "password": password,
        }
        with watched(cluster):
            done = subprocess.run(
                [program, UI / "e2e" / "robust.mjs", cluster.url, json.dumps(there)],
                capture_output=True,
                text=True,
                timeout=4 * DEADLINE_S,
                env={**os.environ, "SHOAL_CHROMIUM": CHROMIUM},
            )
        rest.close()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [fault for fault in found["faults"] if not fault.startswith(KNOWN)] == []
    chinese = found["facts"].pop("chinese")
    assert found["facts"] == {
        "stale": True,
        "keeps": 1,
        "afterApi": True,
        "afterMaster": 1,
        "reader": _NEED.format("runner, writer or owner"),
        "parameters": _NEED.format("writer or owner"),
        "bulk": _NEED.format("runner, writer or owner"),
        "nav": 0,
        "sent": [],
    }
    assert "owner" in chinese
    assert "需要" in chinese
