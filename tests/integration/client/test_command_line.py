"""The ``shoal`` program used as people and scripts use it, on a real cluster."""

import json
import re
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.integration.client.conftest import HELLO, Ended, Shoal, workflow
from tests.support.waiting import DEADLINE_S


def test_hello_is_published_run_and_shown(here: Shoal) -> None:
    first = here("apply", str(HELLO))
    assert (first.status, first.out) == (0, "+ examples/hello  new, 4 tasks\n")
    again = here("apply", str(HELLO), "--json")
    assert [w["created"] for w in again.json["workflows"]] == [False]

    ran = here("run", "hello", "-p", "name=Ada", "--wait")
    assert ran.status == 0, ran.err
    assert "✓ SUCCEEDED" in ran.out
    assert "4 of 4 tasks" in ran.out
    assert re.search(r"\d\d:\d\d:\d\d \S+ SUCCEEDED +greet after", ran.err)

    (instance,) = here("instances", "examples/hello", "--json").json
    assert (instance["state"], instance["parameters"]["name"]) == ("SUCCEEDED", "Ada")
    number = str(instance["id"])
    assert f"{number}  examples/hello v1  ✓ SUCCEEDED" in here("instances").out
    tree = here("instance", number).out
    assert re.search(r"^└─ repeat +✓ SUCCEEDED", tree, re.MULTILINE)
    assert re.search(r"^   └─ done .*also after count$", tree, re.MULTILINE)
    assert here("logs", f"{number}:greet").out == "Hello, Ada!\n"
    assert here("logs", f"{number}:repeat", "-f").out == "Ada, Ada, Ada\n"
    assert here("logs", f"{number}:count", "--json").json["log"] == "a 2\nd 1\n"

    rerun = here("rerun", number, "--wait", "--json")
    assert (rerun.status, rerun.json["rerun_of"]) == (0, instance["id"])


def test_only_what_changed_is_published_and_the_change_is_shown(here: Shoal) -> None:
    workflow("changing", "echo 1\necho 2")
    workflow("steady", "true")
    assert here("apply", ".").status == 0
    workflow("changing", "echo 1\necho two", "on_failure: fail_fast")
    dry = here("apply", ".", "--dry-run")
    assert dry.status == 0
    assert dry.out == (
        "~ default/changing  version 1 → 2\n"
        "    ~ tasks[only].params.script\n"
        "        @@ -1,2 +1,2 @@\n"
        "         echo 1\n"
        "        -echo 2\n"
        "        +echo two\n"
        '    + on_failure  "fail_fast"\n'
        "= default/steady  unchanged, version 1\n"
    )
    assert dry.err == "dry run: 1 changed, 1 unchanged; nothing was published\n"
    assert here("workflow", "changing", "--json").json["version"] == 1
    assert here("apply", ".").err == "1 changed, 1 unchanged\n"
    shown = here("workflow", "changing", "--json").json
    assert (shown["version"], shown["definition"]["on_failure"]) == (2, "fail_fast")
    # What is printed as YAML is the same definition.
    Path("out.yml").write_text(here("workflow", "default/changing", "--yaml").out)
    assert here("apply", "out.yml").err == "1 unchanged\n"
    old = here("workflow", "changing", "--version", "1", "--json").json
    assert old["definition"]["tasks"][0]["params"]["script"] == "echo 1\necho 2\n"


def test_invalid_definitions_end_with_2_and_every_line(here: Shoal) -> None:
    Path("a.yaml").write_text("name: a\ntasks: [{name: x, type: SHEL}]\n")
    Path("b.yaml").write_text("name: b\n\ttasks: []\n")
    text = here("apply", "a.yaml", "b.yaml")
    assert (text.status, text.out) == (2, "")
    assert text.err.startswith("a.yaml:2: tasks[0].type: unknown task type 'SHEL'")
    assert "b.yaml:2: is not YAML: the line is indented with a tab" in text.err
    found = here("apply", "a.yaml", "b.yaml", "--json")
    assert found.status == 2
    assert {(p["file"], p["line"]) for p in found.json["problems"]} == {
        ("a.yaml", 2),
        ("b.yaml", 2),
    }


def test_a_failed_run_ends_with_1_and_the_end_of_its_log(here: Shoal) -> None:
    workflow("fails", "echo before\necho oops >&2\nexit 3")
    here("apply", "fails.yaml")
    ran = here("run", "fails", "-w")
    assert ran.status == 1
    assert "✗ FAILED" in ran.out
    assert "exit code 3" in ran.out
    assert "the log of only ends with\n  before\n  oops\n" in ran.err
    number = re.search(r"as instance (\d+)", ran.err)
    assert number is not None
    recovered = here("recover", number[1], "--wait", "--json")
    assert (recovered.status, recovered.json["state"]) == (1, "FAILED")
    every = here("instance", number[1], "--all", "--json").json["tasks"]
    assert [task["attempt"] for task in every] == [1, 2]
    assert "attempt 1" in here("instance", number[1], "-a").out


def test_a_run_is_paused_resumed_and_stopped(here: Shoal) -> None:
    Path("w.yaml").write_text(
        "name: long\ntasks:\n"
        "- name: first\n  type: SHELL\n"
        "  params: {script: 'while [ ! -e \"$go\" ]; do sleep 0.05; done'}\n"
        "- {name: second, type: SHELL, depends_on: first, params: {script: sleep 300}}\n"
        "parameters: {go: }\n"
    )
    here("apply", "w.yaml")
    go = Path("go").absolute()
    started = here("run", "long", "-p", f"go={go}", "--json").json
    number = str(started["id"])
    assert here("pause", number).out == f"instance {number} is being paused\n"
    go.touch()
    wait_for(lambda: here("instance", number, "--json").json["state"] == "PAUSED")
    assert here("resume", number, "--json").json["state"] == "DONE"
    wait_for(lambda: here("instance", number, "--json").json["tasks"][1]["state"] == "RUNNING")
    assert here("stop", number).status == 0
    wait_for(lambda: here("instance", number, "--json").json["state"] == "STOPPED")
    refused = here("pause", number)
    assert refused.status == 1
    assert refused.err.startswith("error: refused: ")
    assert "STOPPED" in refused.err
    as_json = here("pause", number, "--json")
    assert (as_json.status, as_json.json["state"]) == (1, "REFUSED")


def test_chosen_tasks_are_run_again_killed_and_forced(here: Shoal) -> None:
    Path("chosen.yaml").write_text(
        "name: chosen\ntasks:\n"
        "- {name: first, type: SHELL, params: {script: 'true'}}\n"
        "- {name: second, type: SHELL, depends_on: first, params: {script: '[ -e \"$go\" ]'}}\n"
        "- {name: third, type: SHELL, depends_on: second, params: {script: 'true'}}\n"
        "parameters: {go: }\n"
    )
    here("apply", "chosen.yaml")
    go = Path("go").absolute()
    alone = here("run", "chosen", "-p", f"go={go}", "--task", "first", "--wait", "--json")
    assert (alone.status, states(alone)) == (0, ["SUCCEEDED", "SKIPPED", "SKIPPED"])
    failed = here("run", "chosen", "-p", f"go={go}", "--wait", "--json")
    assert (failed.status, states(failed)) == (1, ["SUCCEEDED", "FAILED", "SKIPPED"])
    number, second = str(failed.json["id"]), str(failed.json["tasks"][1]["id"])

    again = here("rerun-tasks", number, "second", "--upstream", "--wait", "--json")
    assert (again.status, [t["attempt"] for t in again.json["tasks"]]) == (1, [2, 2, 1])
    stale = here("force", second, "--reason", "too late")
    assert stale.status == 1
    assert f"task instance {again.json['tasks'][1]['id']}, came after it" in stale.err

    newest = str(again.json["tasks"][1]["id"])
    forced = here("force", newest, "--reason", "loaded by hand", "--wait", "--json")
    assert (forced.status, states(forced)) == (0, ["SUCCEEDED"] * 3)
    assert forced.json["tasks"][1]["reason"] == "taken for a success by break-glass: loaded by hand"
    ended = here("kill", str(forced.json["tasks"][2]["id"]))
    assert ended.status == 1
    assert "SUCCEEDED" in ended.err

    behind = here("rerun-tasks", number, "second", "--downstream")
    assert behind.out == f"instance {number} runs the chosen tasks again\n"


def test_one_task_is_killed_and_the_others_go_on(here: Shoal) -> None:
    Path("pair.yaml").write_text(
        "name: pair\ntasks:\n"
        "- {name: long, type: SHELL, params: {script: sleep 300}}\n"
        "- name: other\n  type: SHELL\n"
        "  params: {script: 'until [ -e \"$go\" ]; do sleep 0.05; done'}\n"
        "parameters: {go: }\n"
    )
    here("apply", "pair.yaml")
    go = Path("go").absolute()
    number = str(here("run", "pair", "-p", f"go={go}", "--json").json["id"])

    def looked() -> list[str]:
        return states(here("instance", number, "--json"))

    wait_for(lambda: looked() == ["RUNNING", "RUNNING"])
    task = str(here("instance", number, "--json").json["tasks"][0]["id"])
    killed = here("kill", task)
    assert killed.out == f"instance {number} kills task instance {task} and goes on\n"
    wait_for(lambda: looked() == ["KILLED", "RUNNING"])
    go.touch()
    wait_for(lambda: here("instance", number, "--json").json["state"] == "FAILED")
    assert looked() == ["KILLED", "SUCCEEDED"]


def states(shown: Ended) -> list[str]:
    """The states of an instance's tasks, in the order of the definition."""
    return [task["state"] for task in shown.json["tasks"]]


def wait_for(seen: Callable[[], bool], timeout_s: float = DEADLINE_S) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + timeout_s
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.05)  # between two looks at other processes


def test_a_log_is_saved_as_it_is(here: Shoal) -> None:
    workflow("bytes", "printf 'a\\000\\377\\033[2Jb'\nhead -c 300000 /dev/zero")
    here("apply", "bytes.yaml")
    number = here("run", "bytes", "--wait", "--json").json["id"]
    content = b"a\0\xff\x1b[2Jb" + bytes(300_000)
    saved = here("logs", f"{number}:only", "--download", "x.log")
    assert (saved.status, Path("x.log").read_bytes()) == (0, content)
    Path("folder").mkdir()
    into = here("logs", f"{number}:only", "--download", "folder", "--json").json
    assert (into["file"], into["bytes"]) == (f"folder/{number}-only-1.log", len(content))
    nowhere = here("logs", f"{number}:only", "--download", "no/such/x.log")
    assert (nowhere.status, "cannot write no/such/x.log" in nowhere.err) == (1, True)
    assert [path.name for path in Path().glob(".*.partial")] == []


def test_logical_time_is_in_the_zone_of_the_workflow(here: Shoal) -> None:
    workflow("zoned", "echo $[yyyy-MM-dd-HH]", "timezone: Asia/Tokyo")
    here("apply", "zoned.yaml")
    ran = here("run", "zoned", "--logical-time", "2026-03-01T06:00", "--wait", "--json").json
    assert ran["logical_time"] == "2026-02-28T21:00:00Z"
    assert here("logs", f"{ran['id']}:only").out == "2026-03-01-06\n"


def test_status_and_lists(here: Shoal, cluster: LocalCluster) -> None:
    wait_for(lambda: "128 of 128 partitions have an owner" in here("status").out)
    status = here("status")
    assert status.status == 0
    assert f"✓ ok  Shoal {version('shoal')} at {cluster.url}" in status.out
    found = here("status", "--json").json
    assert (len(found["masters"]), len(found["workers"]), found["api"]) == (1, 1, cluster.url)
    assert {t["name"] for t in here("task-types", "--json").json} >= {"SHELL", "PYTHON", "SPARK"}
    assert re.search(r"^SPARK +value", here("task-types").out, re.MULTILINE)
    here("apply", str(HELLO))
    assert "examples/hello" in here("workflows", "hel", "--project", "examples").out
    shown = here("workflow", "hello").out
    assert re.search(r"^times +integer +3 +How often\. *$", shown, re.MULTILINE)
    assert here("instances", "no-such-workflow").err.startswith("no instances")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["run", "helo"], 3, "error: there is no workflow 'helo'; did you mean examples/hello?"),
        (["run", "nothing/hello"], 3, "in the project nothing"),
        (["run", "hello", "-p", "nam=x"], 2, "nam: the workflow has no such parameter"),
        (["run", "hello", "-p", "times=many"], 2, "'many' is not a valid integer"),
        (["run", "hello", "-p", "oops"], 2, "'oops' is not KEY=VALUE"),
        (["run", "hello", "-p", "a=1", "-p", "a=2"], 2, "a is given twice"),
        (["run", "hello", "--priority", "URGENT"], 2, "must be one of HIGHEST"),
        (["run", "hello", "--logical-time", "noon"], 2, "'noon' is not a time"),
        (["run", "hello", "--version", "99"], 3, "99"),
        (["run", "examples/hello", "--project", "other"], 2, "is not in the project other"),
        (["instance", "4711"], 3, "error: there is no workflow instance 4711"),
        (["instance", "x"], 2, "valid integer"),
        (["stop", "4711"], 3, "4711"),
        (["kill", "4711"], 3, "4711"),
        (["force", "4711"], 2, "Missing option '--reason'"),
        (["rerun-tasks", "1", "a", "--only", "--upstream"], 2, "exclude each other"),
        (["run", "hello", "--downstream"], 2, "--downstream needs a task to start from"),
        (["run", "hello", "--task", "gret"], 2, "no task 'gret'; did you mean greet"),
        (["logs", "4711"], 3, "4711"),
        (["logs", "x:y"], 2, "neither an id nor INSTANCE:TASK"),
        (["instances", "--state", "BUSY"], 2, "BUSY is not a state"),
        (["workflow", "hello", "--version", "99"], 3, "99"),
        (["nonsense"], 2, "No such command"),
        (["apply"], 2, "Missing argument"),
        (["apply", "nowhere.yaml"], 2, "nowhere.yaml:1: there is no such file or folder"),
    ],
)
def test_mistakes_are_told_with_their_exit_status(
    here: Shoal, arguments: list[str], status: int, says: str
) -> None:
    here("apply", str(HELLO))
    ended = here(*arguments)
    flat = " ".join(re.sub(r"[│╭╮╰╯─]", " ", ended.err).split())
    assert (ended.status, ended.out) == (status, "")
    assert says in flat


def test_without_a_cluster_the_status_is_4_and_the_advice_is_shoal_up(
    shoal: Shoal, tmp_path: Path, cluster: LocalCluster
) -> None:
    nothing = shoal("status")
    assert nothing.status == 4
    assert "start one with `shoal up`" in nothing.err
    gone = tmp_path / "gone"
    gone.mkdir()
    state = json.loads((cluster.data / "cluster.json").read_text())
    state |= dict.fromkeys(("start", "path", "identity"), "")  # nothing says which folder it is of
    (gone / "cluster.json").write_text(
        json.dumps({**state, "api": f"http://127.0.0.1:{free_port()}"})
    )
    (gone / "token").write_text("t")
    down = shoal("instances", "--data", str(gone))
    assert down.status == 4
    assert f"start it with `shoal up --data '{gone}'`" in down.err
    (gone / "cluster.json").write_text(json.dumps(state))
    stranger = shoal("instances", "--data", str(gone))
    assert stranger.status == 4
    assert "refuses the token" in stranger.err
