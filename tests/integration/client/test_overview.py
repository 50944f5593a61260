"""``shoal today``, ``grid``, ``timeline``, ``attempts``, ``history`` and ``run --preview``."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.client.conftest import Shoal

FLOW = """\
name: overview
parameters: {day: "$[yyyy-MM-dd]"}
tasks:
  - {name: first, type: SHELL, params: {script: "echo ${day}; test -e ready"}, retries: 1}
  - {name: second, type: SHELL, depends_on: [first], params: {script: "true"}}
  - {name: third, type: SHELL, depends_on: [second], params: {script: "true"}}
"""


@pytest.fixture
def failed(here: Shoal) -> Any:
    """A run of which the first task has failed twice."""
    Path("overview.yaml").write_text(FLOW)
    assert here("apply", "overview.yaml").status == 0
    return here("run", "overview", "--wait", "--json", "--logical-time", "2026-03-01").json


def test_a_failed_run_at_a_glance(here: Shoal, failed: Any) -> None:
    run = str(failed["id"])

    lines = here("today", "-p", "default").out.splitlines()
    [line] = [one for one in lines if "default/overview" in one]
    assert "failed" in line
    assert run in line
    [lane] = [one for one in here("today", "--json").json if one["workflow"] == "overview"]
    assert lane["rank"] == "failed"

    shown = here("grid", "overview", "--runs", "1").out.splitlines()
    assert [one.split() for one in shown[:4]] == [
        ["run", "✗"],
        ["first", "✗"],
        ["second", "–"],
        ["third", "–"],
    ]
    assert shown[4].startswith("1 run, 2026-")

    drawn = here("timeline", run, "--all").out.splitlines()
    assert [one.split()[0] for one in drawn[1:3]] == ["first", "first"]
    assert "━" in drawn[1]
    assert "#2" in drawn[2]
    assert "critical path: first" in here("timeline", run).err

    tries = here("attempts", run, "first").out.splitlines()
    assert [one.split()[2] for one in tries[1:]] == ["2", "1"]
    assert "FAILED" in tries[1]
    assert here("attempts", run, "--state", "RUNNING").err.strip().endswith("no attempt fits")
    assert here("attempts", run, "--state", "WALKING").status == 2

    told = here("history", "--instance", run).out
    assert "START overview" in told
    assert "FAILED" in told
    kinds = {one["kind"] for one in here("history", "overview", "--kind", "command", "--json").json}
    assert kinds == {"command"}


def test_what_is_not_there(here: Shoal) -> None:
    for command in (("timeline", "999999"), ("attempts", "999999"), ("grid", "nothing-here")):
        answer = here(*command)
        assert (answer.status, answer.out) == (3, ""), command
    assert here("history", "--kind", "weather").status != 0


def test_a_preview_starts_nothing(here: Shoal) -> None:
    Path("overview.yaml").write_text(FLOW.replace("name: overview", "name: previewed"))
    assert here("apply", "overview.yaml").status == 0
    asked = ("run", "previewed", "--preview", "--logical-time", "2026-03-01", "--task", "first")
    shown = here(*asked, "--only")
    assert "would run default/previewed v1 for 2026-03-01 00:00 UTC" in shown.err
    assert "day = 2026-03-01\n" in shown.out
    assert "script: echo ${day}; test -e ready" in shown.out
    assert "third  does not run" in shown.out
    planned = here(*asked, "--json").json
    assert [one["runs"] for one in planned["tasks"]] == [True, False, False]
    assert "has not run yet" in here("grid", "previewed").err
