"""CONTAINER tasks at a stand-in for an engine: no container runs here.

What is shown is what Shoal asks for, in moments that a real engine (``tests/containers``) does not
let one choose.
"""

import json
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.container.kind import Container
from tests.integration.worker.sql.kit import TAG, Ended, Process
from tests.support.servers.engine_api import EngineApi, serving
from tests.support.waiting import DEADLINE_S

CANARY = "canary-19be44"


@pytest.fixture
def engine() -> Iterator[EngineApi]:
    # The paths of sockets are short, so it is not a folder of pytest's.
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder, "sock")) as one:
        yield one


class Tasks:
    """Runs attempts at the engine, each in a folder of its own."""

    def __init__(self, engine: EngineApi, folder: Path) -> None:
        self._engine, self._folder, self._number = engine, folder, 0

    def begun(self, **more: Any) -> Process:
        self._number += 1
        settings = {**self._engine.settings, **more.pop("settings", {})}
        params = {"engine": "docker", "image": "etl/load:1", **more.pop("params", {})}
        folder = self._folder / str(self._number)
        return Process(None, params, folder, kind=Container, settings=settings, **more)

    def ran(self, **more: Any) -> Ended:
        with self.begun(**more) as process:
            return process.ended()


@pytest.fixture
def tasks(engine: EngineApi, tmp_path: Path) -> Tasks:
    return Tasks(engine, tmp_path)


def test_container_is_closed_and_its_variables_hold_no_secret(
    engine: EngineApi, tasks: Tasks
) -> None:
    variables = {"url": f"db://{CANARY}", "SHOAL_PARAM_URL": f"db://{CANARY}", "day": "1"}
    with tasks.begun(
        params={"command": ["load"], "secrets": {"pw": CANARY}, "memory": "64m", "cpus": 0.5},
        parameters={"url": f"db://{CANARY}", "day": "1"},
        secrets={"pw": CANARY},
        env={**variables, "SHOAL_SECRET_pw": CANARY},
    ) as process:
        made = engine.container("running")
        made.writes("half")
        made.ends(3)
        ended = process.ended()
    assert (ended.code, ended.settled) == (3, True), ended.log
    assert ended.log.endswith("half")
    assert not engine.containers
    host = made.body["HostConfig"]
    assert (made.name, made.body["Labels"]["shoal.attempt"]) == (TAG, "1")
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    assert (host["NetworkMode"], host["PidsLimit"]) == ("none", 1000)
    assert (host["Memory"], host["MemorySwap"], host["NanoCpus"]) == (64 << 20, 64 << 20, 500000000)
    assert not {"Privileged", "PidMode", "IpcMode", "UsernsMode", "Devices"} & host.keys()
    assert {one["Target"]: one["ReadOnly"] for one in host["Mounts"]} == {
        "/shoal": True,
        "/shoal/output": False,
    }
    assert "day=1" in made.body["Env"]
    assert CANARY not in json.dumps(made.body)


def test_kill_between_making_and_starting_ends_it(engine: EngineApi, tasks: Tasks) -> None:
    """It is not running yet when it is stopped, and would begin after that."""
    has_come, may_go_on = threading.Event(), threading.Event()

    def hold(asked: str) -> None:
        if asked == "POST start":
            has_come.set()
            assert may_go_on.wait(DEADLINE_S)

    engine.before = hold
    with tasks.begun() as process:
        assert has_come.wait(DEADLINE_S)
        process.signal(signal.SIGTERM)
        process.until("cancelling")
        with engine.changed:
            assert engine.changed.wait_for(lambda: "POST stop" in engine.asked, DEADLINE_S)
        may_go_on.set()
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    assert not engine.containers


def test_killed_container_is_stopped_and_removed(engine: EngineApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        engine.container("running")
        process.until("runs")
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    assert engine.asked.index("POST stop") < engine.asked.index("DELETE container")
    assert not engine.containers


def test_what_cannot_be_removed_is_not_settled(engine: EngineApi, tasks: Tasks) -> None:
    engine.refuses["DELETE container"] = 500
    with tasks.begun() as process:
        engine.container("running").ends(0)
        ended = process.ended()
    assert (ended.code, ended.settled) == (1, False)
    assert tasks.ran(settle=True).code == 1
    engine.refuses.clear()
    assert tasks.ran(settle=True).settled
    assert not engine.containers


def test_next_attempt_ends_what_is_left_first(engine: EngineApi, tasks: Tasks) -> None:
    with tasks.begun() as process:
        first = engine.container("running")
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    with tasks.begun(attempt=2) as process:
        process.until("runs")
        second = engine.container("running")
        assert engine.ever == [first, second]
        assert engine.containers == [second]
        second.ends(0)
        assert process.ended().code == 0


def test_late_attempt_leaves_its_successors_container_alone(
    engine: EngineApi, tasks: Tasks
) -> None:
    with tasks.begun(attempt=2) as process:
        process.until("runs")
        late = tasks.ran(attempt=1)
        assert "a later attempt, number 2, has begun already" in late.reason
        assert tasks.ran(attempt=1, settle=True).settled
        engine.container("running").ends(0)
        assert process.ended().code == 0


def test_two_attempts_at_once_are_refused(engine: EngineApi, tasks: Tasks) -> None:
    """The other one makes its container behind the look for what is left."""
    engine.refuses["POST create"] = 409
    ended = tasks.ran()
    assert (ended.code, ended.settled) == (1, False)
    assert f"another attempt of this task has just made {TAG}" in ended.reason
    assert "POST start" not in engine.asked


@pytest.mark.parametrize("source", ["/etc", "/data/in/link"], ids=["other", "below"])
def test_folder_that_is_not_listed_is_not_mounted(
    engine: EngineApi, tasks: Tasks, source: str
) -> None:
    params = {"mounts": [{"source": source, "target": "/in"}]}
    ended = tasks.ran(params=params, settings={"container_mounts": "/data/in"})
    assert (ended.code, ended.settled) == (65, True)
    assert f"the folder {source} may not be mounted on this worker" in ended.reason
    assert not engine.ever
