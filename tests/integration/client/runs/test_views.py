"""Views of many runs and attempts as commands, on a real cluster."""

import re
from pathlib import Path

import pytest

from tests.integration.client.conftest import Shoal

SEEN = """\
project: seen
name: {name}
parameters: {{day: "$[yyyy-MM-dd-1]"}}
tasks:
  - {{name: fetch, type: SHELL, params: {{script: "echo $day"}}}}
  - name: load
    type: SHELL
    depends_on: fetch
    retries: 1
    retry_delay: 0
    params: {{script: "exit 3"}}
  - {{name: report, type: SHELL, depends_on: load, params: {{script: "true"}}}}
  - {{name: off, type: SHELL, enabled: false, params: {{script: "true"}}}}
"""


def failed_run(here: Shoal, name: str) -> int:
    """Return a run whose task load has failed twice."""
    Path("seen.yaml").write_text(SEEN.format(name=name))
    assert here("apply", "seen.yaml").status == 0
    time = "2026-03-10T06:00:00Z"
    ended = here("run", f"seen/{name}", "--logical-time", time, "--wait", "--json")
    assert ended.status == 1, ended.err
    found: int = ended.json["id"]
    return found


def test_timeline_shows_when_tasks_worked_and_the_critical_path(here: Shoal) -> None:
    run = str(failed_run(here, "timed"))
    shown = here("timeline", run)
    assert shown.status == 0, shown.err
    fetch, load, *_ = shown.out.splitlines()[1:]
    assert (fetch.split()[0], load.split()[:2]) == ("fetch", ["load", "2"])
    assert "█" in fetch
    assert "critical: fetch → load, " in shown.err
    bars = here("timeline", run, "--all", "--json").json["bars"]
    assert [one["attempt"] for one in bars if one["task"] == "load"] == [1, 2]
    assert here("timeline", "999999").status == 3


def test_attempts_of_a_task_of_a_run_and_of_many(here: Shoal) -> None:
    run = str(failed_run(here, "tried"))
    shown = here("attempts", run, "load")
    head, second, first = shown.out.splitlines()
    assert "instance" not in head
    assert re.search(r"load +2 +✗ FAILED", second)
    assert re.search(r"load +1 +✗ FAILED", first)
    of_run = here("attempts", run, "--state", "succeeded", "--json").json
    assert [one["task"] for one in of_run] == ["fetch"]
    again = str(failed_run(here, "tried"))
    of_both = here("attempts", "-w", "seen/tried", "--state", "FAILED")
    assert {line.split()[1] for line in of_both.out.splitlines()[1:]} == {run, again}
    assert "seen/tried load" in of_both.out
    assert len(here("attempts", "-w", "seen/tried", "-n", "3", "--json").json) == 3


def test_attempts_say_what_is_not_there(here: Shoal) -> None:
    run = str(failed_run(here, "missed"))
    wrong = here("attempts", run, "laod")
    assert (wrong.status, "has no task 'laod'; it has load" in wrong.err) == (3, True)
    assert here("attempts", "999999").status == 3
    wrong = here("attempts", run, "--state", "BROKEN")
    assert (wrong.status, "there are WAITING" in wrong.err) == (2, True)
    nothing = here("attempts", run, "load", "--state", "RUNNING")
    assert (nothing.status, nothing.out, nothing.err) == (0, "", "no attempts\n")


def test_today_shows_workflows_by_how_they_stand(here: Shoal) -> None:
    run = failed_run(here, "now")
    shown = here("today", "--project", "seen")
    [line] = [line for line in shown.out.splitlines() if "seen/now" in line]
    assert line.split()[1] == "failed"
    assert f" {run} " in line
    assert " failed; from " in shown.err
    found = here("today", "--project", "seen", "-n", "1", "--json").json
    assert (len(found["items"]), found["items"][0]["rank"]) == (1, "failed")
    ended = here("today", "--since", "2026-03-02", "--until", "2026-03-01")
    assert (ended.status, "until" in ended.err) == (2, True)


def test_grid_has_a_letter_for_each_task_and_names_what_failed(here: Shoal) -> None:
    nothing = here("grid", "seen/nothing")
    assert (nothing.status, "there is no workflow 'nothing'" in nothing.err) == (3, True)
    runs = [failed_run(here, "grown") for _ in range(2)]
    shown = here("grid", "seen/grown")
    newest, oldest = shown.out.splitlines()[1:]
    assert (newest.split()[0], oldest.split()[0]) == (str(runs[1]), str(runs[0]))
    assert re.search(r" SFNN +FAILED load$", newest)
    assert "tasks: fetch, load, report, off" in shown.err
    assert "F FAILED" in shown.err
    one = here("grid", "seen/grown", "-n", "1", "--by-start")
    assert "`shoal instances seen/grown --sort -created_at` lists all" in one.err
    found = here("grid", "seen/grown", "--json").json
    assert [run["cells"] for run in found["runs"]] == ["SFNN", "SFNN"]


def test_grid_of_a_workflow_without_runs_says_how_to_start_one(here: Shoal) -> None:
    Path("seen.yaml").write_text(SEEN.format(name="idle"))
    assert here("apply", "seen.yaml").status == 0
    shown = here("grid", "seen/idle")
    assert (shown.status, shown.out) == (0, "")
    assert "`shoal run seen/idle` starts one" in shown.err


def test_days_count_what_ran_and_what_did_not(here: Shoal) -> None:
    failed_run(here, "daily")
    shown = here("days", "seen/daily", "--first", "2026-03-09", "-n", "3")
    assert shown.status == 0, shown.err
    lines = [line.split() for line in shown.out.splitlines()[1:]]
    assert lines == [["2026-03-11", "–"], ["2026-03-10", "✗", "1"], ["2026-03-09", "–"]]
    assert len(here("days", "seen/daily", "-n", "7", "--json").json) == 7
    assert here("days", "seen/daily", "--tz", "Nowhere").status == 2
    assert here("days", "seen/daily", "--first", "yesterday").status == 2


def test_history_tells_events_commands_and_who_sent_them(here: Shoal) -> None:
    run = str(failed_run(here, "told"))
    shown = here("history", "seen/told")
    [command] = [line for line in shown.out.splitlines() if "command" in line.split()]
    assert "START DONE" in command
    assert any(re.search(r" load .*FAILED", line) for line in shown.out.splitlines())
    states = here("history", "--instance", run, "--kind", "instance.state", "--json").json
    assert states[0]["data"]["state"] == "FAILED"
    assert {one["kind"] for one in states} == {"instance.state"}
    assert len(here("history", "-n", "3", "--json").json) == 3
    takeovers = here("history", "--kind", "partition.takeover", "-n", "2")
    assert "from no owner to " in takeovers.out
    wrong = here("history", "--kind", "task")
    assert (wrong.status, "there are instance.state" in wrong.err) == (2, True)
    before = here("history", "seen/told", "--until", "2020-01-01")
    assert (before.status, before.out) == (0, "")
    assert here("history", "--instance", "999999").status == 3


def test_dry_run_shows_what_a_start_would_run(here: Shoal) -> None:
    Path("seen.yaml").write_text(SEEN.format(name="planned"))
    assert here("apply", "seen.yaml").status == 0
    asked = ("run", "seen/planned", "--dry-run", "--logical-time", "2026-03-10T06:00:00Z")
    shown = here(*asked)
    assert shown.status == 0, shown.err
    assert shown.out.startswith("seen/planned  version 1  for 2026-03-10 06:00 UTC  priority ")
    assert "└─ load" in shown.out
    assert re.search(r"^off .*would not run$", shown.out, re.MULTILINE)
    assert "\nfetch\n  script: echo $day\n  ${day} = 2026-03-09\n" in shown.out
    assert shown.err == "3 tasks would run; nothing was started\n"
    chosen = here(*asked, "--task", "load", "-p", "day=x", "--json").json
    assert [one["task"] for one in chosen["tasks"] if one["runs"]] == ["load"]
    assert here("instances", "seen/planned", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--wait"], "nothing to wait for in a dry run"),
        (["--task", "fetsh"], "tasks"),
        (["-p", "nothing=1"], "parameters.nothing"),
    ],
)
def test_dry_run_is_refused_for_what_a_start_would_be(
    here: Shoal, arguments: list[str], says: str
) -> None:
    Path("seen.yaml").write_text(SEEN.format(name="refused"))
    assert here("apply", "seen.yaml").status == 0
    shown = here("run", "seen/refused", "--dry-run", *arguments)
    assert (shown.status, says in shown.err) == (2, True), shown.err
