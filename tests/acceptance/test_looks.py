"""A task that waits for a file, on a real cluster: it holds no slot and says what it waits for."""

from pathlib import Path

from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S


def test_files_are_waited_for_without_a_slot_and_said_to_be(rest: Rest, tmp_path: Path) -> None:
    place = tmp_path / "in" / "orders.csv"
    wait: dict[str, object] = {
        "type": "WAIT_FILE",
        "params": {"path": str(place.parent / "*.csv"), "every": "1s"},
    }
    publish(rest, "waits_for_file", wait)
    run = rest.start("waits_for_file")
    waits = rest.until(
        lambda: rest.tasks(run)["wait"],
        lambda task: task["looks"] >= 2 and task["state"] == "DELAYED",
        timeout_s=2 * DEADLINE_S,
    )
    assert waits["worker"] is None
    assert waits["reason"] == f"{place.parent}/*.csv: nothing is there"
    assert waits["waiting_since"] is not None
    said = rest.until(lambda: why(rest, run), lambda found: "look" in found)["look"]
    assert "the last answer: " in said
    listed = rest.get("/task-instances", workflow="waits_for_file", limit=100)["items"]
    assert "RESCHEDULED" not in {task["state"] for task in listed}
    place.parent.mkdir()
    place.write_text("id\n1\n")
    assert rest.wait_for(run)["state"] == "SUCCEEDED"
    attempts = rest.instance(run, attempts="all")["tasks"]
    states = [task["state"] for task in attempts if task["task"] == "wait"]
    assert states == ["RESCHEDULED"] * (len(states) - 1) + ["SUCCEEDED"]
    assert len(states) >= 3
    assert str(place) in rest.log(rest.tasks(run)["after"]["id"])
    first = next(task for task in attempts if task["state"] == "RESCHEDULED")
    assert "not yet" in rest.log(first["id"])


def publish(rest: Rest, name: str, wait: dict[str, object]) -> None:
    """Publish a workflow that waits, and then shows what has been found."""
    after = {"type": "SHELL", "params": {"script": 'echo "$file"'}, "depends_on": ["wait"]}
    body = {"name": name, "tasks": [{"name": "wait", **wait}, {"name": "after", **after}]}
    rest.put(f"/projects/default/workflows/{name}", body)


def why(rest: Rest, run: int) -> dict[str, str]:
    """Return what is said about the attempt that waits now, by layer."""
    newest = rest.tasks(run)["wait"]["id"]
    findings = rest.get(f"/task-instances/{newest}/why")["findings"]
    return {one["layer"]: one["text"] for one in findings}
