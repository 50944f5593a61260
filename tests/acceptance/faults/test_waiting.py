"""Tasks that wait for slots and for other workflows, on a real cluster whose master is killed."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import kill_owner, watched, written
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S

DAY = "2026-03-02T06:00:00Z"
SLOTS, WORKFLOWS, TASKS = 2, 3, 4
LEDGER = """
echo "start $SHOAL_TASK" >> "$dir/ledger"
sleep 0.4
echo "end $SHOAL_TASK" >> "$dir/ledger"
"""
# What waits for what, by the name of the workflow that waits.
WAITS: dict[str, dict[str, Any]] = {
    "after-all": {"when": {"workflow": "up", "date": "today"}},
    "after-task": {"when": {"workflow": "up", "task": "first", "date": "today"}},
    "not-missing": {"when": {"workflow": "up", "date": "last1Days", "if_missing": "fail"}},
    "perhaps": {"when": {"workflow": "up", "date": "last1Days", "if_missing": "skip"}},
    "impatient": {"when": {"workflow": "up", "date": "last1Days"}},
}


@dataclass
class Played:
    """What was started, by workflow."""

    rest: Rest
    ledger: Path
    grouped: list[int]
    waiting: dict[str, int]
    upstream: int

    def dependent(self, workflow: str) -> Any:
        """The DEPENDENT task of a workflow."""
        return self.rest.tasks(self.waiting[workflow])["wait"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Everything is started, a master is killed, and only then what is waited for runs."""
    data, ledger = tmp_path_factory.mktemp("waiting"), tmp_path_factory.mktemp("ledger")
    (data / "shoal.toml").write_text(f"[cluster]\nsession_timeout_s = {SERVICE_SESSION_S}\n")
    with (
        LocalCluster(data, slots=8, api_port=free_port()) as running,
        watched(running),
        closing(Rest(running.url, running.token)) as rest,
    ):
        waiting = _start_waiting(rest)
        grouped = _start_grouped(rest, ledger)
        rest.until(lambda: written(ledger / "ledger"), lambda seen: len(seen) >= 4)
        for name in ("after-all", "after-task"):
            _until_reason(rest, waiting[name], "no run for 2026-03-02 (today)")
        kill_owner(running, rest, waiting["after-all"])
        yield Played(rest, ledger, grouped, waiting, rest.start("up", logical_time=DAY))


def _start_waiting(rest: Rest) -> dict[str, int]:
    rest.publish("up", {"first": {}, "second": {"depends_on": ["first"], "script": "sleep 1"}})
    for name, params in WAITS.items():
        timeout = {"timeout": 1} if name == "impatient" else {}
        wait = {"type": "DEPENDENT", "params": params, **timeout}
        rest.publish(name, {"wait": wait, "then": {"depends_on": ["wait"]}})
    return {name: rest.start(name, logical_time=DAY) for name in WAITS}


def _start_grouped(rest: Rest, ledger: Path) -> list[int]:
    rest.put("/projects/default/concurrency-groups/narrow", {"slots": SLOTS})
    for number in range(WORKFLOWS):
        rest.publish(
            f"grouped{number}",
            {
                f"w{number}t{task}": {"script": LEDGER, "concurrency_group": "narrow"}
                for task in range(TASKS)
            },
            parameters={"dir": str(ledger)},
        )
    return [rest.start(f"grouped{number}") for number in range(WORKFLOWS)]


def _until_reason(rest: Rest, instance_id: int, text: str) -> None:
    rest.until(
        lambda: rest.tasks(instance_id)["wait"]["reason"], lambda seen: seen and text in seen
    )


def test_no_more_run_at_once_than_there_are_slots(played: Played) -> None:
    assert {played.rest.wait_for(i)["state"] for i in played.grouped} == {"SUCCEEDED"}
    seen, at_once = written(played.ledger / "ledger"), [0]
    for line in seen:
        at_once.append(at_once[-1] + (1 if line.startswith("start ") else -1))
    assert max(at_once) == SLOTS
    assert sorted(seen) == sorted(
        f"{word} w{number}t{task}"
        for word in ("start", "end")
        for number in range(WORKFLOWS)
        for task in range(TASKS)
    )
    group = played.rest.get("/projects/default/concurrency-groups/narrow")
    assert (group["taken"], group["waiting"]) == (0, 0)


def test_workflow_waits_for_the_run_of_its_day(played: Played) -> None:
    after = played.rest.wait_for(played.waiting["after-all"])
    assert after["state"] == "SUCCEEDED"
    upstream = played.rest.wait_for(played.upstream)
    task = played.dependent("after-all")
    assert upstream["finished_at"] <= task["finished_at"]
    (interval,) = task["detail"]["items"][0]["intervals"]
    assert interval["runs"] == [{"instance": played.upstream, "state": "SUCCEEDED"}]


def test_task_may_wait_for_a_task(played: Played) -> None:
    assert played.rest.wait_for(played.waiting["after-task"])["state"] == "SUCCEEDED"
    first = played.rest.tasks(played.upstream)["first"]
    assert first["finished_at"] <= played.dependent("after-task")["finished_at"]


@pytest.mark.parametrize(
    ("workflow", "instance", "task", "reason"),
    [
        ("not-missing", "FAILED", "FAILED", "no run for 2026-03-01 (last1Days)"),
        ("perhaps", "SUCCEEDED", "SKIPPED", "no run for 2026-03-01 (last1Days)"),
        ("impatient", "FAILED", "FAILED", "timed out"),
    ],
)
def test_who_waits_for_a_run_that_is_missing(
    played: Played, workflow: str, instance: str, task: str, reason: str
) -> None:
    assert played.rest.wait_for(played.waiting[workflow])["state"] == instance
    found = played.dependent(workflow)
    assert found["state"] == task
    assert reason in found["reason"]
    then = played.rest.tasks(played.waiting[workflow])["then"]
    assert then["state"] == "SKIPPED"
