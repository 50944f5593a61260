"""Views of many runs as tables: bars of a timeline, grids, lines of the history."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.client.cli.runs.preview import tasks_table
from shoal.client.cli.views.grid import days_table, runs_table
from shoal.client.cli.views.history import what_text
from shoal.client.cli.views.timeline import Axis, Span, bar_text, timeline_table
from shoal.client.cli.views.today import lanes_table
from tests.unit.client.terminal import shown

NOW = datetime(2026, 11, 21, 6, 1, tzinfo=UTC)
START = datetime(2026, 11, 21, 6, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def span(began: float, started: float | None, ended: float) -> Span:
    return Span(after(began), None if started is None else after(started), after(ended))


@pytest.mark.parametrize(
    ("one", "bar"),
    [
        (span(0, 0, 40), "█" * 40),
        (span(0, 10, 20), "·" * 10 + "█" * 10),
        (span(10, None, 20), " " * 10 + "·" * 10),  # still waits for a worker
        (span(39.9, 40, 40), " " * 39 + "█"),  # never too short to be seen
        (span(20, 20, 20), " " * 20 + "█"),
        (span(0, 40, 40), "·" * 39 + "█"),
    ],
)
def test_a_bar_is_where_the_time_was(one: Span, bar: str) -> None:
    axis = Axis.over([after(0), after(40)])
    assert bar_text(axis, one, is_critical=True) == bar
    assert bar_text(axis, one, is_critical=False) == bar.replace("█", "▒")


def test_a_run_without_length_has_bars() -> None:
    axis = Axis.over([START])
    assert bar_text(axis, span(0, 0, 0), is_critical=True) == "█"


def _bar(task: str, *times: float | None, **fields: Any) -> dict[str, Any]:
    names = ("queued_at", "started_at", "finished_at")
    moments = [None if one is None else after(one).isoformat() for one in times]
    found = {"task_instance_id": 1, "task": task, "attempt": 1, "state": "RUNNING"}
    return {**found, "is_critical": False, **dict(zip(names, moments, strict=True)), **fields}


def test_a_timeline_is_in_the_order_of_time_and_ends_now() -> None:
    bars = [
        _bar("never", None, None, None, state="WAITING"),
        _bar("late", 30, 40, None),
        _bar("early", 0, 0, 30, is_critical=True),
    ]
    found: Any = {"bars": bars, "critical_path": ["early"], "critical_s": 30.0}
    early, late, never = shown(timeline_table(found, NOW, 200))[1:]
    assert early.endswith("█" * 20)
    assert late.endswith(" " * 20 + "·" * 6 + "▒" * 14)
    assert never.split() == ["never", "·", "WAITING"]
    nothing: Any = {**found, "bars": bars[:1]}
    # Without anything that has begun there is no time to show.
    assert "time" not in shown(timeline_table(nothing, NOW, 200))[0]


def test_a_grid_names_what_failed_and_what_is_at_work() -> None:
    legend = [
        {"cell": cell, "state": state, "means": state or "no such task"}
        for cell, state in (("S", "SUCCEEDED"), ("F", "FAILED"), ("r", "RUNNING"), (".", None))
    ]
    names = [f"t{n}" for n in range(8)]
    run = {"id": 7, "version": 2, "state": "RUNNING", "logical_time": START.isoformat()}
    times = {"started_at": START.isoformat(), "finished_at": None}
    found: Any = {
        "tasks": [{"name": name, "type": "SHELL", "is_current": True} for name in names],
        "runs": [{**run, **times, "cells": "SFFFFFr."}],
        "legend": legend,
        "next": None,
    }
    [line] = shown(runs_table(found, NOW, 200))[1:]
    assert line.endswith("SFFFFFr.  FAILED t1, t2, t3 and 2 more; RUNNING t6")


def test_days_without_runs_say_so() -> None:
    found: Any = [
        {"date": "2026-11-20", "states": {}, "missing": 0, "is_more": False},
        {"date": "2026-11-21", "states": {"SUCCEEDED": 2}, "missing": 1, "is_more": False},
    ]
    assert [line.split() for line in shown(days_table(found, 200))] == [
        ["day", "runs", "missing"],
        ["2026-11-21", "✓", "2", "1"],
        ["2026-11-20", "–"],
    ]


def test_a_lane_says_what_is_late_before_what_its_run_waits_for() -> None:
    times = {"created_at": START.isoformat(), "started_at": START.isoformat()}
    waits = {"code": "tasks.queued", "arguments": {}, "text": "tasks that wait for a worker: 1"}
    run = {"id": 7, "state": "RUNNING", "reason": None, **times, "finished_at": None}
    lane = {"project": "p", "workflow": "w", "rank": "late", "is_more": True, "late": []}
    late = {"said": {"text": "schedule 7 should have fired"}, "since": "", "instance_id": None}
    lanes: Any = [
        {**lane, "runs": [{**run, "waits_for": waits}], "late": [late], "next_fires": []},
        {**lane, "runs": [{**run, "waits_for": waits}], "next_fires": []},
        {**lane, "runs": [], "is_more": False, "next_fires": [{"at": after(3600).isoformat()}]},
    ]
    first, second, third = shown(lanes_table(lanes, NOW, 200))[1:]
    assert first.endswith("schedule 7 should have fired")
    assert second.endswith("tasks that wait for a worker: 1")
    assert "● 1  …" in second
    assert third.split()[:2] == ["p/w", "late"]


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("command", {"type": "STOP", "state": "REFUSED", "reason": "it has ended", "task": None},
         "STOP REFUSED: it has ended"),
        ("task.state", {"workflow": "w", "task": "a", "state": "RUNNING", "worker": "w1"},
         "RUNNING, worker w1"),
        ("instance.late", {"workflow": "w", "deadline_at": "T"}, "deadline at T"),
        ("instance.state", {"reason": "text alone"}, "text alone"),
        ("workflow.archived", {"workflow": "w"}, ""),
        ("partition.takeover", {"partition": 3, "owner": "m2", "previous_owner": "m1", "epoch": 5},
         "partition 3 from m1 to m2"),
        ("partition.takeover", {"partition": 3, "owner": "m2", "previous_owner": None},
         "partition 3 from no owner to m2"),
    ],
)  # fmt: skip
def test_what_happened_in_a_few_words(kind: str, data: dict[str, Any], text: str) -> None:
    assert what_text(kind, data) == text


def test_a_plan_says_which_tasks_would_not_run() -> None:
    one: dict[str, Any] = {"type": "SHELL", "worker_group": "default", "rendered": None}
    tasks: Any = [
        {**one, "task": "a", "depends_on": [], "runs": True},
        {**one, "task": "b", "depends_on": [], "runs": True},
        {**one, "task": "c", "depends_on": ["a", "b"], "runs": False},
    ]
    lines = shown(tasks_table(tasks, 200))
    assert lines[1].split()[0] == "a"
    assert lines[3].startswith("└─ c")
    assert lines[3].endswith("would not run; also after a")
