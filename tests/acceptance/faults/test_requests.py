"""Every request and every overlap policy on a real cluster, a master killed in the middle of each.

Everything is played at the same time on one cluster, and judged piece by piece.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import kill_owner, watched
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S

# A run writes when it starts and when it ends, and ends once the file "go" is there.
LEDGER = """
echo "start $n" >> "$dir/ledger"
until [ -e "$dir/go" ]; do sleep 0.1; done
echo "end $n" >> "$dir/ledger"
"""


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster whose masters come back when they are killed."""
    folder = tmp_path_factory.mktemp("requests")
    (folder / "shoal.toml").write_text(f"[cluster]\nsession_timeout_s = {SERVICE_SESSION_S}\n")
    with LocalCluster(folder, slots=8, api_port=free_port()) as running, watched(running):
        yield running


@pytest.fixture(scope="module")
def rest(frail: LocalCluster) -> Iterator[Rest]:
    with closing(Rest(frail.url, frail.token)) as client:
        yield client


# -- overlap policies -----------------------------------------------------------------------------


class Overlapping:
    """Runs of one workflow, numbered in the order of their starts."""

    def __init__(self, rest: Rest, folder: Path, overlap: str) -> None:
        self.rest = rest
        self.folder = folder / overlap
        self.folder.mkdir()
        self.name = overlap.replace("_", "-")
        self.instances: dict[int, int] = {}  # instance ids by number
        self.refused: dict[int, str] = {}
        rest.publish(
            self.name,
            {"only": {"script": LEDGER}},
            overlap=overlap,
            parameters={"dir": str(self.folder), "n": "0"},
        )

    def start(self, number: int, **fields: Any) -> None:
        outcome = self.rest.command(
            "START", workflow=self.name, parameters={"n": str(number)}, **fields
        )
        if outcome["state"] == "REFUSED":
            self.refused[number] = outcome["reason"]
        else:
            self.instances[number] = outcome["result_instance_id"]

    def ended(self) -> dict[int, Any]:
        """Let everything end; return the instances by number."""
        (self.folder / "go").touch()
        return {number: self.rest.wait_for(one) for number, one in self.instances.items()}

    def is_running(self, number: int) -> None:
        """Wait until the task of a run writes."""
        self.rest.until(lambda: f"start {number}" in self.ledger(), bool)

    def ledger(self) -> list[str]:
        ledger = self.folder / "ledger"
        return ledger.read_text().splitlines() if ledger.exists() else []


@pytest.fixture(scope="module")
def overlapping(
    frail: LocalCluster, rest: Rest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Overlapping]:
    """All policies: a run is active, others come, a master dies, and then runs end."""
    folder = tmp_path_factory.mktemp("overlaps")
    names = ("queue", "queue_by_priority", "queue_latest", "skip_new", "replace")
    found = {name: Overlapping(rest, folder, name) for name in names}
    for one in found.values():
        one.start(1)
        one.is_running(1)
    for number, priority in ((2, "LOW"), (3, "HIGHEST"), (4, "MEDIUM")):
        for name, one in found.items():
            if name != "skip_new":
                one.start(number, priority=priority)
    found["skip_new"].start(2)
    kill_owner(frail, rest, found["queue"].instances[2])
    return found


def in_turn(*numbers: int) -> list[str]:
    """The ledger of runs that came one after the other."""
    return [f"{word} {number}" for number in numbers for word in ("start", "end")]


def states(instances: Mapping[int, Any]) -> dict[int, str]:
    return {number: instance["state"] for number, instance in instances.items()}


def test_queued_runs_come_one_after_the_other(overlapping: Mapping[str, Overlapping]) -> None:
    runs = overlapping["queue"]
    assert set(states(runs.ended()).values()) == {"SUCCEEDED"}
    assert runs.ledger() == in_turn(1, 2, 3, 4)


def test_most_urgent_run_comes_first(overlapping: Mapping[str, Overlapping]) -> None:
    runs = overlapping["queue_by_priority"]
    assert set(states(runs.ended()).values()) == {"SUCCEEDED"}
    assert runs.ledger() == in_turn(1, 3, 4, 2)


def test_only_the_latest_run_waits(overlapping: Mapping[str, Overlapping]) -> None:
    runs = overlapping["queue_latest"]
    ended = runs.ended()
    assert states(ended) == {1: "SUCCEEDED", 2: "STOPPED", 3: "STOPPED", 4: "SUCCEEDED"}
    assert ended[2]["reason"] == f"stopped: superseded by instance {ended[3]['id']}"
    assert runs.ledger() == in_turn(1, 4)


def test_run_that_comes_too_early_is_refused(overlapping: Mapping[str, Overlapping]) -> None:
    runs = overlapping["skip_new"]
    assert "skip_new" in runs.refused[2]
    runs.ended()
    runs.start(3)
    assert states(runs.ended()) == {1: "SUCCEEDED", 3: "SUCCEEDED"}
    assert runs.ledger() == in_turn(1, 3)


def test_old_run_makes_room_for_a_new_one(overlapping: Mapping[str, Overlapping]) -> None:
    runs = overlapping["replace"]
    first = runs.rest.until(
        lambda: runs.rest.instance(runs.instances[1]), lambda seen: seen["state"] == "STOPPED"
    )
    assert first["reason"].startswith("stopped: replaced by instance ")
    ended = runs.ended()
    assert states(ended) == {1: "STOPPED", 2: "STOPPED", 3: "STOPPED", 4: "SUCCEEDED"}
    assert runs.ledger()[0] == "start 1"
    assert runs.ledger()[-2:] == in_turn(4)
    assert "end 1" not in runs.ledger()


# -- requests -------------------------------------------------------------------------------------


WAIT = 'until [ -e "$go" ]; do sleep 0.1; done'
CHAIN: Mapping[str, Mapping[str, Any]] = {
    "a": {},
    "b": {"depends_on": ["a"]},
    "c": {"depends_on": ["b"]},
}
# The workflow whose instance each request is about.
WORKFLOWS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "PAUSE": {**CHAIN, "a": {"script": WAIT}},
    "STOP": {**CHAIN, "a": {"script": WAIT}},
    "KILL_TASK": {"a": {"script": "sleep 300"}, "b": {"script": WAIT}},
    "RECOVER": {**CHAIN, "b": {"script": '[ -e "$go" ]', "depends_on": ["a"]}},
    "FORCE_SUCCESS": {**CHAIN, "b": {"script": "exit 3", "depends_on": ["a"]}},
    "RERUN": CHAIN,
    "RERUN_TASKS": CHAIN,
}
RUNNING_MEANWHILE = ("PAUSE", "STOP", "KILL_TASK")


class Requested:
    """One instance for each request, brought to where the request makes sense."""

    def __init__(self, rest: Rest, folder: Path) -> None:
        self.rest = rest
        self.folder = folder
        self.commands: dict[str, int] = {}
        self.instances: dict[str, int] = {}
        for kind, tasks in WORKFLOWS.items():
            name = self.workflow_of(kind)
            rest.publish(name, tasks, parameters={"go": str(folder / kind)})
            self.instances[kind] = rest.start(name)
        for kind in WORKFLOWS:
            if kind in RUNNING_MEANWHILE:
                self.until(kind, lambda seen: seen["tasks"][0]["state"] == "RUNNING")
            else:
                rest.wait_for(self.instances[kind])

    @staticmethod
    def workflow_of(kind: str) -> str:
        return kind.lower().replace("_", "-")

    def send(self, kind: str, **fields: Any) -> None:
        """Store a request; nobody waits for its outcome."""
        answer = self.rest.http.post("/commands", json={"type": kind, **fields})
        assert answer.status_code == 202, answer.text
        self.commands[kind] = answer.json()["id"]

    def go(self, kind: str) -> None:
        """Let the task end that waits for it."""
        (self.folder / kind).touch()

    def task(self, kind: str, name: str) -> Any:
        return self.rest.tasks(self.instances[kind])[name]

    def until(self, kind: str, good: Callable[[Any], bool]) -> Any:
        """Wait until the instance of a request is as it should be."""
        return self.rest.until(lambda: self.rest.instance(self.instances[kind]), good)

    def result(self, kind: str) -> int:
        """Return the instance that a request has led to, once it is carried out."""
        outcome = self.rest.outcome(self.commands[kind])
        assert outcome["state"] == "DONE", outcome
        return int(outcome["result_instance_id"])

    def ended(self, instance_id: int) -> tuple[str, dict[str, tuple[str, int]]]:
        """Return how an instance has ended: its state, the state and attempt of each task."""
        instance = self.rest.wait_for(instance_id)
        tasks = {task["task"]: (task["state"], task["attempt"]) for task in instance["tasks"]}
        return instance["state"], tasks


@pytest.fixture(scope="module")
def requested(
    frail: LocalCluster, rest: Rest, tmp_path_factory: pytest.TempPathFactory
) -> Requested:
    """A master dies, and in this moment everybody wants something."""
    found = Requested(rest, tmp_path_factory.mktemp("requested"))
    killed = found.task("KILL_TASK", "a")["id"]
    forced = found.task("FORCE_SUCCESS", "b")["id"]
    found.go("RECOVER")
    kill_owner(frail, rest, found.instances["FORCE_SUCCESS"])
    found.send("START", workflow=found.workflow_of("RERUN"), tasks=["b"], mode="downstream")
    for kind in ("PAUSE", "STOP", "RECOVER", "RERUN"):
        found.send(kind, instance_id=found.instances[kind])
    again = {"tasks": ["b"], "mode": "downstream"}
    found.send("RERUN_TASKS", instance_id=found.instances["RERUN_TASKS"], **again)
    found.send("KILL_TASK", task_instance_id=killed)
    found.send("FORCE_SUCCESS", task_instance_id=forced, reason="loaded by hand")
    return found


ONCE = ("SUCCEEDED", 1)
TWICE = ("SUCCEEDED", 2)


def test_chosen_tasks_run_alone(requested: Requested) -> None:
    ended = requested.ended(requested.result("START"))
    assert ended == ("SUCCEEDED", {"a": ("SKIPPED", 1), "b": ONCE, "c": ONCE})


def test_rerun_is_another_instance(requested: Requested) -> None:
    again = requested.result("RERUN")
    assert again != requested.instances["RERUN"]
    assert requested.ended(again) == ("SUCCEEDED", {"a": ONCE, "b": ONCE, "c": ONCE})


def test_chosen_tasks_run_again_in_their_instance(requested: Requested) -> None:
    instance_id = requested.result("RERUN_TASKS")
    assert instance_id == requested.instances["RERUN_TASKS"]
    requested.until("RERUN_TASKS", lambda seen: seen["tasks"][2]["attempt"] == 2)
    assert requested.ended(instance_id) == ("SUCCEEDED", {"a": ONCE, "b": TWICE, "c": TWICE})


def test_recovery_keeps_what_succeeded(requested: Requested) -> None:
    instance_id = requested.result("RECOVER")
    requested.until("RECOVER", lambda seen: seen["tasks"][2]["attempt"] == 2)
    assert requested.ended(instance_id) == ("SUCCEEDED", {"a": ONCE, "b": TWICE, "c": TWICE})


def test_forced_success_lets_the_rest_run_and_says_who_asked(requested: Requested) -> None:
    instance_id = requested.result("FORCE_SUCCESS")
    requested.until("FORCE_SUCCESS", lambda seen: seen["tasks"][2]["attempt"] == 2)
    assert requested.ended(instance_id) == ("SUCCEEDED", {"a": ONCE, "b": TWICE, "c": TWICE})
    assert requested.task("FORCE_SUCCESS", "b")["reason"] == (
        "taken for a success by break-glass: loaded by hand"
    )


def test_killed_task_leaves_the_others_alone(requested: Requested) -> None:
    instance_id = requested.result("KILL_TASK")
    requested.until("KILL_TASK", lambda seen: seen["tasks"][0]["state"] == "KILLED")
    assert requested.task("KILL_TASK", "b")["state"] == "RUNNING"
    requested.go("KILL_TASK")
    assert requested.ended(instance_id) == ("FAILED", {"a": ("KILLED", 1), "b": ONCE})


def test_paused_run_goes_on_when_it_is_resumed(requested: Requested) -> None:
    instance_id = requested.result("PAUSE")
    requested.go("PAUSE")
    requested.until("PAUSE", lambda seen: seen["state"] == "PAUSED")
    assert requested.task("PAUSE", "a")["state"] == "SUCCEEDED"
    assert requested.rest.command("RESUME", instance_id=instance_id)["state"] == "DONE"
    assert requested.ended(instance_id) == ("SUCCEEDED", {"a": ONCE, "b": ONCE, "c": ONCE})


def test_stopped_run_starts_anew_what_was_killed(requested: Requested) -> None:
    instance_id = requested.result("STOP")
    assert requested.ended(instance_id)[0] == "STOPPED"
    requested.go("STOP")
    assert requested.rest.command("RESUME", instance_id=instance_id)["state"] == "DONE"
    requested.until("STOP", lambda seen: seen["state"] == "SUCCEEDED")
    assert requested.ended(instance_id) == ("SUCCEEDED", {"a": TWICE, "b": TWICE, "c": TWICE})
