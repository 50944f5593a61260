"""Sub-workflows and MAP on a real cluster whose masters hold one instance each, if they may."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import kill_owner, shared_out, watched
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S

LEVELS = 10
ITEMS = 20
PARALLEL = 5
NOTE = 'echo "start $SHOAL_TASK$item" >> "$dir/ledger"; '
DONE = 'echo "end $SHOAL_TASK$item" >> "$dir/ledger"'


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A cluster of its own; its masters start nothing new beside one instance each."""
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    monkeypatch.setenv("SHOAL_MASTER_MAX_OPEN_INSTANCES", "1")
    with (
        LocalCluster(tmp_path / "data", workers=1, slots=16, api_port=free_port()) as running,
        watched(running),
    ):
        yield running


def sub(workflow: str, **fields: Any) -> dict[str, Any]:
    parameters = {"dir": "${dir}"}
    return {
        "type": "SUB_WORKFLOW",
        "params": {"workflow": workflow, "parameters": parameters},
        **fields,
    }


def publish(rest: Rest, folder: Path) -> None:
    """The workflows of this test; all of them write into ``folder``."""
    given: dict[str, Any] = {"parameters": {"dir": str(folder)}}
    rest.publish(f"level{LEVELS}", {"x": {"script": NOTE}}, **given)
    for level in range(1, LEVELS):
        rest.publish(f"level{level}", {"s": sub(f"level{level + 1}")}, **given)
    rest.publish(
        "item",
        {"i": {"script": f"{NOTE} sleep 0.5; {DONE}"}},
        parameters={"dir": str(folder), "item": {}},
    )
    rest.publish(
        "leaf",
        {"x": {"script": f'{NOTE} [ -e "$dir/good" ]'}, "y": {"script": NOTE}},
        **given,
    )
    rest.publish("mid", {"a": {"script": NOTE}, "s": sub("leaf", depends_on=["a"])}, **given)
    each = {"workflow": "item", "items": list(range(ITEMS)), "parallel": PARALLEL}
    each["parameters"] = {"dir": "${dir}"}
    rest.publish("top", {"m": {"type": "MAP", "params": each}, "s": sub("mid")}, **given)
    rest.publish("sleeps", {"z": {"script": 'echo $$ > "$dir/pid"; sleep 300'}}, **given)
    rest.publish("wraps", {"s": sub("sleeps")}, **given)
    rest.publish("stops", {"s": sub("wraps")}, **given)


def test_families_of_runs(cluster: LocalCluster, tmp_path: Path) -> None:
    with closing(Rest(cluster.url, cluster.token)) as rest:
        shared_out(rest, [64, 64])
        publish(rest, tmp_path)
        ten_levels_deep(rest)
        (tmp_path / "ledger").unlink()
        map_and_recovery(cluster, rest, tmp_path)
        stop_of_a_grandchild(rest, tmp_path)


def ten_levels_deep(rest: Rest) -> None:
    assert rest.wait_for(rest.start("level1"))["state"] == "SUCCEEDED"
    (lowest,) = rest.get("/instances", workflow=f"level{LEVELS}")["items"]
    assert lowest["parent"]["depth"] == LEVELS - 1


def map_and_recovery(cluster: LocalCluster, rest: Rest, folder: Path) -> None:
    """A master dies in the middle of a MAP; then what failed two levels below is recovered."""
    ledger = folder / "ledger"
    top = rest.start("top")
    rest.until(lambda: lines(ledger), lambda seen: sum(line.startswith("end") for line in seen) > 3)
    kill_owner(cluster, rest, top)
    assert rest.wait_for(top)["state"] == "FAILED"
    tasks = rest.tasks(top)
    assert (tasks["m"]["state"], tasks["s"]["state"]) == ("SUCCEEDED", "FAILED")
    assert len(tasks["m"]["detail"]["children"]) == ITEMS
    assert most_at_once(lines(ledger)) <= PARALLEL
    (folder / "good").touch()
    assert rest.command("RECOVER", instance_id=top)["state"] == "DONE"
    assert rest.wait_for(top)["state"] == "SUCCEEDED"
    expected = {f"{word} i{n}": 1 for n in range(ITEMS) for word in ("start", "end")}
    assert Counter(lines(ledger)) == expected | {"start a": 1, "start x": 2, "start y": 1}
    for workflow in ("mid", "leaf"):
        (run,) = rest.get("/instances", workflow=workflow)["items"]
        assert run["state"] == "SUCCEEDED"


def stop_of_a_grandchild(rest: Rest, folder: Path) -> None:
    top = rest.start("stops")
    pid = int(rest.until(lambda: read(folder / "pid"), bool))
    assert rest.command("STOP", instance_id=top)["state"] == "DONE"
    assert rest.wait_for(top)["state"] == "STOPPED"
    assert not Path(f"/proc/{pid}").exists()
    for workflow in ("wraps", "sleeps"):
        (run,) = rest.get("/instances", workflow=workflow)["items"]
        assert run["state"] == "STOPPED"


def lines(ledger: Path) -> list[str]:
    return read(ledger).splitlines()


def read(path: Path) -> str:
    """What a file holds, as far as its last line is complete."""
    with suppress(FileNotFoundError):
        text = path.read_text()
        return text[: text.rfind(os.linesep) + 1]
    return ""


def most_at_once(ledger: list[str]) -> int:
    """How many items ran at the same time."""
    most = now = 0
    for line in ledger:
        word, what = line.split()
        if what.startswith("i"):
            now += 1 if word == "start" else -1
            most = max(most, now)
    return most
