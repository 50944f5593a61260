"""Drafts, versions, names, archive and exchange from the command line, on a real cluster."""

import re
from pathlib import Path

from tests.integration.client.conftest import Shoal, workflow


def test_draft_is_checked_planned_and_published(here: Shoal) -> None:
    workflow("drafted", "echo one", "project: drafting", "labels: {team: flights}")
    assert here("apply", ".").status == 0
    Path("wrong.yaml").write_text("tasks:\n  - {name: a, type: SHEL}\n")
    wrong = here("draft", "check", "drafting/drafted", "wrong.yaml")
    assert wrong.status == 2
    assert wrong.err.startswith("wrong.yaml:2: tasks[0].type: ")
    Path("next.yaml").write_text(
        "# comment\nschedules: [{cron: 0 0 6 * * ?}]\n"
        "tasks:\n  - {name: main, type: SHELL, params: {script: echo two}}\n"
    )
    assert here("draft", "check", "drafting/drafted", "next.yaml").status == 0
    saved = here("draft", "save", "drafting/drafted", "next.yaml")
    assert saved.err == "draft of drafting/drafted is saved; it builds upon version 1\n"
    stale = here("draft", "save", "drafting/drafted", "next.yaml", "--etag", '"x"')
    assert stale.status == 1
    assert re.search(
        r"drafted +break-glass +1 +1", here("draft", "list", "--project", "drafting").out
    )
    assert here("draft", "show", "drafting/drafted").out == Path("next.yaml").read_text()
    plan = here("draft", "plan", "drafting/drafted")
    assert "echo two" in plan.out
    assert "+ schedule 0 0 6 * * ? (UTC): " in plan.out
    assert "would be version 2; nothing was published" in plan.err
    assert here("draft", "publish", "drafting/drafted").err == (
        "drafting/drafted is version 2 now\n"
    )
    assert here("draft", "show", "drafting/drafted").status == 3
    assert re.search(r"2 +\S.* break-glass", here("versions", "drafted").out)
    assert "-labels:" in here("diff", "drafted").out
    assert here("diff", "drafted", "1", "--base", "2", "--json").json["version"] == 1
    assert "is version 3 now, which says what 1 says" in here("restore", "drafted", "1").err
    labelled = here("workflows", "--label", "team=flights", "--json").json
    assert [one["name"] for one in labelled] == ["drafted"]
    here("draft", "save", "drafting/drafted", "next.yaml")
    assert here("draft", "discard", "drafting/drafted").status == 0


def test_renamed_workflow_keeps_its_runs_and_their_logs(here: Shoal) -> None:
    workflow("before", "echo heard", "project: naming")
    Path("above.yaml").write_text(
        "project: naming\nname: above\n"
        "tasks: [{name: sub, type: SUB_WORKFLOW, params: {workflow: before}}]\n"
    )
    assert here("apply", ".").status == 0
    run = here("run", "naming/before", "--wait", "--json")
    assert run.status == 0, run.err
    instance = here("instances", "--project", "naming", "--json").json[0]
    refused = here("rename", "naming/before", "after")
    assert refused.status == 1
    assert "is named by naming/above" in refused.err
    tried = here("rename", "naming/before", "after", "--dry-run")
    assert "named by naming/above, task sub (SUB_WORKFLOW)" in tried.err
    done = here("rename", "naming/before", "after", "--despite-references")
    assert done.err.endswith("naming/before is called naming/after\n")
    log = here("logs", f"{instance['id']}:only")
    assert "heard" in log.out, log.err
    again = here("run", "naming/after", "--wait")
    assert again.status == 0, again.err
    assert "names naming/before" in here("dependencies", "naming/above").out

    workflow("timed", "true", "project: naming", "schedules: [{cron: 0 6 * * *}]")
    assert here("apply", "timed.yaml").status == 0
    [schedule] = here("schedule", "list", "naming/timed", "--json").json
    paused = here("schedule", "pause", str(schedule["id"]))
    assert paused.err.endswith("of naming/timed is paused\n")
    assert " paused" in here("schedule", "list", "naming/timed").out
    resumed = here("schedule", "resume", str(schedule["id"]), "--json").json
    assert resumed["next_fire_at"] == schedule["next_fire_at"]

    assert here("archive", "naming/after").status == 0
    assert [one["name"] for one in here("workflows", "--archived", "--json").json] == ["after"]
    stopped = here("run", "naming/after")
    assert stopped.status == 1
    assert "shoal unarchive naming/after" in stopped.err
    assert here("unarchive", "naming/after").status == 0
    assert here("copy", "naming/after", "second").status == 0
    assert here("delete", "naming/second", "--dry-run").status == 0
    assert here("delete", "naming/second").err.endswith("workflow naming/second is deleted\n")


def test_project_is_exported_and_imported(here: Shoal) -> None:
    here("calendar", "set", "exported/days", "2098-06-02")
    workflow("given", "true", "project: exported", "schedules: [{cron: 0 6 * * *, calendar: days}]")
    assert here("apply", ".").status == 0
    Path("all.yaml").write_text(here("export", "--project", "exported").out)
    here("calendar", "set", "taking/other", "2098-06-02")
    tried = here("import", "all.yaml", "--project", "taking", "--dry-run")
    assert tried.out == "created  calendar days\ncreated  workflow given\n"
    assert tried.err == "nothing was stored\n"
    assert here("import", "all.yaml", "--project", "taking").status == 0
    assert here("workflow", "taking/given").status == 0
    Path("all.yaml").write_text("name: x\ntasks: [{name: a}]\n")
    wrong = here("import", "all.yaml", "--project", "taking")
    assert wrong.status == 2
    assert "all.yaml:2: tasks[0].type: is required" in wrong.err


CHAIN = """\
name: {name}
tasks:
  - name: wait
    type: DEPENDENT
    params: {{when: {{workflow: {source}, date: last1Days}}}}
"""


def test_dependencies_on_a_day_are_drawn_with_their_runs(here: Shoal) -> None:
    here("apply", ".", "--project", "days")
    workflow("first", "true", "project: days")
    Path("second.yaml").write_text("project: days\n" + CHAIN.format(name="second", source="first"))
    Path("third.yaml").write_text("project: days\n" + CHAIN.format(name="third", source="second"))
    applied = here("apply", ".")
    assert applied.status == 0, applied.err
    run = ("run", "days/first", "--logical-time", "2026-03-10T06:00:00Z", "--wait", "--json")
    ended = here(*run)
    assert ended.status == 0, ended.err
    shown = here("dependencies", "days/second", "--date", "2026-03-11")
    first, second, third = [line for line in shown.out.splitlines() if "days/" in line]
    assert str(ended.json["id"]) in first
    assert "SUCCEEDED" in first
    assert ("└─ days/second" in second, "no run" in second) == (True, True)
    assert "looks for last1Days" in third
    assert "critical: days/first → days/second" in shown.err
    whole = here("dependencies", "--project", "days", "--date", "2026-03-11", "--json").json
    assert {one["id"] for one in whole["nodes"]} == {"days/first", "days/second", "days/third"}
    assert "names days/first, task wait" in here("dependencies", "days/second").out
    assert here("dependencies", "days/second", "--date", "tomorrow").status == 2


def test_workflows_that_wait_in_a_circle_are_drawn(here: Shoal) -> None:
    for name, source in (("one", "two"), ("two", "one")):
        text = CHAIN.format(name=name, source=source)
        Path(f"{name}.yaml").write_text(f"project: circle\n{text}")
    assert here("apply", ".").status == 0
    shown = here("dependencies", "circle/one", "--date", "2026-03-11")
    assert shown.status == 0, shown.err
    assert len([line for line in shown.out.splitlines() if "circle/" in line]) == 2
