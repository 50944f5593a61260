"""Sub-workflows: what a task and the runs that work for it tell each other, and do about it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from shoal.core.decide import draft, logic
from shoal.core.decide.children import Child, ChildRuns
from shoal.core.definition.selection import Selection
from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import ChildChanged, KillRequested, RerunRequested
from shoal.core.runs.run import Run
from shoal.core.runs.scope import Levels, levels
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import of_attempt
from tests.unit.core.decide.family import Family, each, sub

FAIL = TaskSignal.FAIL
W = WorkflowState
PAUSE, RESUME = CommandType.PAUSE, CommandType.RESUME
STOP, RECOVER = CommandType.STOP, CommandType.RECOVER
THREE: dict[str, dict[str, dict[str, Any]]] = {
    "top": {"s": sub("mid"), "after": {"depends_on": ["s"]}},
    "mid": {"a": {}, "s": sub("leaf", depends_on=["a"])},
    "leaf": {"x": {}, "y": {}},
}


def three() -> tuple[Family, int, int, int]:
    """Three levels, the lowest of which has begun."""
    family = Family(THREE)
    top = family.create("top")
    family.deliver_all()
    (mid,) = family.of("mid")
    family.do(mid, "a")
    (leaf,) = family.of("leaf")
    return family, top, mid, leaf


def mapped(items: int, parallel: int, **fields: Any) -> tuple[Family, int]:
    """A MAP over runs of one task each."""
    family = Family({"top": {"m": each("leaf", list(range(items)), parallel, **fields)},
                     "leaf": {"x": {}}})  # fmt: skip
    top = family.create("top")
    family.deliver_all()
    return family, top


# -- SUB_WORKFLOW -------------------------------------------------------------------------------


def test_parent_ends_as_its_sub_workflow_ends_and_has_its_outputs() -> None:
    family, top, mid, leaf = three()
    child = family.task(top, "s").detail["children"]["0"]
    assert (child["instance"], child["state"]) == (mid, W.RUNNING)
    family.do(leaf, "x", rows="7")
    family.do(leaf, "y")
    assert family.state(leaf) is family.state(mid) is W.SUCCEEDED
    assert family.task(top, "s").outputs == {"rows": "7"}
    family.do(top, "after")
    assert family.state(top) is W.SUCCEEDED


def test_failure_of_a_grandchild_fails_the_tasks_above_with_the_reason() -> None:
    family, top, mid, leaf = three()
    family.do(leaf, "x", FAIL)
    family.do(leaf, "y")
    assert family.task(top, "s").reason == f"instance {mid} FAILED: 1 task failed"
    assert family.task(mid, "s").reason == f"instance {leaf} FAILED: 1 task failed"
    assert family.state(top) is W.FAILED


def test_recover_recurses_and_keeps_successes() -> None:
    family, top, mid, leaf = three()
    family.do(leaf, "x", FAIL)
    family.do(leaf, "y")
    family.ask(top, RECOVER)
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.RUNNING] * 3
    assert set(family.members[leaf].queue.values()) == {"x"}
    assert not family.members[mid].queue
    family.do(leaf, "x")
    family.do(top, "after")
    assert family.state(top) is W.SUCCEEDED
    assert len(family.members) == 3


def test_two_retries_continue_the_same_sub_workflow() -> None:
    family = Family({"top": {"s": sub("leaf", retries=2)}, "leaf": {"x": {}, "y": {}}})
    top = family.create("top")
    family.deliver_all()
    (leaf,) = family.of("leaf")
    family.do(leaf, "y")
    for _ in range(3):
        family.do(leaf, "x", FAIL)
    assert family.of("leaf") == [leaf]
    assert family.asked == [(leaf, RECOVER)] * 2
    assert (family.task(leaf, "x").number, family.task(leaf, "y").number) == (3, 1)
    assert family.state(top) is W.FAILED


def test_rerun_of_the_task_starts_a_new_sub_workflow() -> None:
    family, top, _, leaf = three()
    family.do(leaf, "x", FAIL)
    family.do(leaf, "y")
    family.send(top, RerunRequested(Selection(("s",)), family.now))
    family.deliver_all()
    assert len(family.of("mid")) == 2


def test_unknown_workflow_fails_the_task_and_a_recovery_tries_again() -> None:
    family = Family({"top": {"s": sub("leaf")}})
    top = family.create("top")
    family.deliver_all()
    assert family.state(top) is W.FAILED
    reason = "the sub-workflow could not be started: there is no such workflow"
    assert family.task(top, "s").reason == reason
    family.plans |= Family({"leaf": {"x": {}}}).plans
    family.ask(top, RECOVER)
    family.deliver_all()
    family.do(family.of("leaf")[0], "x")
    assert family.state(top) is W.SUCCEEDED


def test_refusal_reaches_a_task_that_is_being_paused() -> None:
    family = Family({"top": {"s": sub("leaf"), "z": {}}})
    top = family.create("top")
    family.ask(top, PAUSE)  # before the refusal arrives
    family.deliver_all()
    assert family.task(top, "s").state is TaskState.FAILED
    assert family.state(top) is W.PAUSED


def test_pause_stop_and_resume_reach_the_lowest_level() -> None:
    family, top, mid, leaf = three()
    family.claim(leaf, "x")
    family.ask(top, PAUSE)
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.PAUSING] * 3
    family.end(leaf, "x")
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.PAUSED] * 3
    family.ask(top, RESUME)
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.RUNNING] * 3
    family.claim(leaf, "y")
    family.ask(top, STOP)
    family.deliver_all()
    assert family.members[leaf].to_kill
    assert [family.state(i) for i in (top, mid, leaf)] == [W.STOPPING] * 3
    family.end(leaf, "y")
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.STOPPED] * 3
    family.ask(top, RESUME)
    family.deliver_all()
    family.do(leaf, "y")
    family.do(top, "after")
    assert [family.state(i) for i in (top, mid, leaf)] == [W.SUCCEEDED] * 3
    assert family.task(leaf, "x").number == 1
    assert len(family.members) == 3


def test_stop_of_a_paused_family_and_its_resume() -> None:
    family, top, mid, leaf = three()
    family.ask(top, PAUSE)
    family.deliver_all()
    family.ask(top, STOP)
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.STOPPED] * 3
    family.ask(top, RESUME)
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.RUNNING] * 3


def test_pause_taken_back_before_it_was_complete_and_asked_again() -> None:
    family, top, mid, leaf = three()
    family.claim(leaf, "x")
    for request in (PAUSE, RESUME, PAUSE):  # nobody has heard of any of them yet
        family.ask(top, request)
    family.deliver_all()
    family.end(leaf, "x")
    family.deliver_all()
    assert [family.state(i) for i in (top, mid, leaf)] == [W.PAUSED] * 3


def test_sub_workflow_stopped_by_hand_leaves_the_task_running_until_it_is_resumed() -> None:
    family, top, mid, leaf = three()
    family.ask(mid, STOP)
    family.deliver_all()
    assert family.state(mid) is family.state(leaf) is W.STOPPED
    assert family.task(top, "s").state is TaskState.RUNNING
    assert family.task(top, "s").detail["children"]["0"]["state"] == W.STOPPED
    family.ask(mid, RESUME)
    family.deliver_all()
    assert family.task(top, "s").detail["children"]["0"]["state"] == W.RUNNING
    family.do(leaf, "x")
    family.do(leaf, "y")
    assert family.task(top, "s").state is TaskState.SUCCEEDED


def test_resume_of_the_parent_waits_for_a_child_that_is_still_being_stopped() -> None:
    family, top, mid, leaf = three()
    family.ask(top, PAUSE)
    family.deliver_all()
    family.ask(leaf, RESUME)  # by hand, while the parents are paused
    family.claim(leaf, "x")
    family.ask(mid, STOP)
    family.deliver_all()
    assert (family.state(mid), family.state(leaf)) == (W.STOPPED, W.STOPPING)
    family.ask(top, RESUME)
    family.deliver_all()
    assert family.task(mid, "s").detail["children"]["0"]["state"] == W.STOPPING
    family.end(leaf, "x")
    family.deliver_all()
    assert family.state(leaf) is W.RUNNING, "it was resumed as soon as it stood still"


def test_recovery_finds_a_child_that_somebody_has_recovered_and_paused() -> None:
    family, top, _, leaf = three()
    family.do(leaf, "x", FAIL)
    family.do(leaf, "y")
    family.ask(leaf, RECOVER)
    family.ask(leaf, PAUSE)
    family.deliver_all()
    assert (family.state(top), family.state(leaf)) == (W.FAILED, W.PAUSED)
    family.ask(top, RECOVER)
    family.deliver_all()
    family.do(leaf, "x")
    family.do(top, "after")
    assert family.state(top) is W.SUCCEEDED


def test_recovery_finds_a_child_that_somebody_has_recovered_to_success() -> None:
    family, top, _, leaf = three()
    family.do(leaf, "x", FAIL)
    family.do(leaf, "y")
    family.ask(leaf, RECOVER)
    family.deliver_all()
    family.do(leaf, "x", rows="3")
    assert family.state(top) is W.FAILED
    family.ask(top, RECOVER)
    family.deliver_all()
    assert family.task(top, "s").state is TaskState.SUCCEEDED
    assert family.task(top, "s").outputs == {"rows": "3"}


def test_pause_does_not_wait_for_a_child_that_waits_for_other_runs() -> None:
    family = Family({"top": {"s": sub("leaf")}, "leaf": {"x": {}}}, waits={"leaf"})
    top = family.create("top")
    family.deliver_all()
    (leaf,) = family.of("leaf")
    assert family.task(top, "s").detail["children"]["0"]["state"] == W.QUEUED
    family.ask(top, PAUSE)
    family.deliver_all()
    assert (family.state(top), family.state(leaf)) == (W.PAUSED, W.QUEUED)
    family.admit(leaf)
    family.deliver_all()
    assert family.state(leaf) is W.PAUSED, "it was paused as soon as it could start"
    family.ask(top, RESUME)
    family.deliver_all()
    family.do(leaf, "x")
    assert family.state(top) is W.SUCCEEDED


def test_child_that_waits_for_other_runs_goes_on_after_a_pause_it_did_not_notice() -> None:
    family = Family({"top": {"s": sub("leaf")}, "leaf": {"x": {}}}, waits={"leaf"})
    top = family.create("top")
    family.deliver_all()
    (leaf,) = family.of("leaf")
    family.ask(top, PAUSE)
    family.deliver_all()
    family.admit(leaf)  # the parent is to hear of it after it was resumed
    family.ask(top, RESUME)
    family.deliver_all()
    family.do(leaf, "x")
    assert family.state(top) is W.SUCCEEDED


def test_timeout_of_the_task_stops_the_sub_workflow_and_a_retry_continues_it() -> None:
    family = Family({"top": {"s": sub("leaf", timeout=60, retries=1)}, "leaf": {"x": {}, "y": {}}})
    top = family.create("top")
    family.deliver_all()
    (leaf,) = family.of("leaf")
    family.do(leaf, "y")
    family.claim(leaf, "x")
    family.pass_time(60)
    family.deliver_all()
    assert family.task(top, "s").state is TaskState.RUNNING, "until the child has stopped"
    family.end(leaf, "x")
    family.deliver_all()
    assert family.members[top].stored["s", 1].reason == "timed out after 1m 00s"
    assert family.task(top, "s").number == 2
    assert family.state(leaf) is W.RUNNING
    family.do(leaf, "x")
    assert family.state(top) is W.SUCCEEDED
    assert family.task(leaf, "y").number == 1


def test_killed_task_stops_its_sub_workflow_and_is_not_tried_again() -> None:
    family = Family({"top": {"s": sub("leaf", retries=3)}, "leaf": {"x": {}}})
    top = family.create("top")
    family.deliver_all()
    (leaf,) = family.of("leaf")
    family.claim(leaf, "x")
    family.send(top, KillRequested("s", family.now))
    family.deliver_all()
    family.end(leaf, "x")
    family.deliver_all()
    assert family.state(leaf) is W.STOPPED
    assert family.task(top, "s").state is TaskState.KILLED
    assert family.state(top) is W.FAILED


# -- MAP ----------------------------------------------------------------------------------------


def test_map_keeps_its_window_full_and_passes_items_on() -> None:
    family, top = mapped(5, 2)
    for done in range(5):
        running = [i for i in family.of("leaf") if family.state(i) is W.RUNNING]
        assert len(running) == min(2, 5 - done)
        family.do(running[0], "x", n=str(done))
    assert family.state(top) is W.SUCCEEDED
    assert [family.parameters[i]["item"] for i in family.of("leaf")] == ["0", "1", "2", "3", "4"]
    assert family.task(top, "m").outputs == {"n": '["0", "1", "2", "3", "4"]'}


def test_items_beyond_the_budget_of_a_decision_start_in_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many run in parallel: what one decision may render fails no item."""
    monkeypatch.setattr(draft, "_MOST_CHARACTERS", 3_000)
    monkeypatch.setattr(draft, "RENDER_CHARACTERS", 1_000)
    task = each("leaf", list(range(10)), 10)
    task["params"]["parameters"] = {"big": "x" * 700 + "${item}"}
    family = Family({"top": {"m": task}, "leaf": {"x": {}}})
    top = family.create("top")
    assert 0 < len(family.lines) < 10
    family.deliver_all()
    while waiting := [one for one in family.of("leaf") if family.state(one) is W.RUNNING]:
        family.do(waiting[0], "x")
    assert family.state(top) is W.SUCCEEDED
    assert len(family.of("leaf")) == 10


def test_steps_of_a_decision_grow_with_its_items_and_not_with_their_square() -> None:
    """Items are started together, and continued together, by one decision each."""

    def steps(items: int) -> tuple[int, int]:
        task = each("leaf", list(range(items)), 1_000)
        task["params"]["parameters"] = {"day": "${item}"}
        family = Family({"top": {"m": task}, "leaf": {"x": {}}})
        with counted_steps() as starting:
            top = family.create("top")
        attempt = family.task(top, "m")
        paused: dict[str, Child] = {
            str(i): {"state": W.STOPPED, "again": True} for i in range(items)
        }
        children = ChildRuns(replace(attempt, detail={**attempt.detail, "children": paused}))
        with counted_steps() as continuing:
            asked = [children.ask(*one) for one in children.to_continue()]
        assert len(asked) == items
        return starting[0], continuing[0]

    steps(1)  # what is imported and compiled once
    for few, many in zip(steps(50), steps(400), strict=True):
        assert few * 4 < many < few * 10


def test_parameters_are_collected_once_in_a_decision_that_starts_items_and_else_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected: list[str] = []

    def noted(run: Run, task: str) -> Levels:
        collected.append(task)
        return levels(run, task)

    monkeypatch.setattr(logic, "levels", noted)
    task = each("leaf", list(range(6)), 4)
    task["params"]["parameters"] = {"day": "${item}"}
    family = Family({"top": {"m": task}, "leaf": {"x": {}}})
    top = family.create("top")
    family.deliver_all()
    assert collected == ["m"]
    leaves = family.of("leaf")
    for done, leaf in enumerate(leaves, 1):
        family.do(leaf, "x")  # the first two make room for an item each
        assert len(collected) == 1 + min(done, 2)
    for leaf in family.of("leaf")[len(leaves) :]:
        family.do(leaf, "x")
    assert len(collected) == 3
    assert family.state(top) is W.SUCCEEDED


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Count what the interpreter executes in the block: instructions of Python functions."""
    count = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count[0] += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def test_empty_map_succeeds() -> None:
    family, top = mapped(0, 2)
    assert family.state(top) is W.SUCCEEDED


def test_recovery_of_a_map_runs_failed_items_only() -> None:
    family, top = mapped(4, 4)
    first, second, third, fourth = family.of("leaf")
    family.do(first, "x")
    family.do(second, "x", FAIL)
    family.do(third, "x")
    family.do(fourth, "x", FAIL)
    reason = f"2 of 4 items did not succeed; first: instance {second} FAILED: 1 task failed"
    assert family.task(top, "m").reason == reason
    family.ask(top, RECOVER)
    family.deliver_all()
    running = [i for i in family.of("leaf") if family.state(i) is W.RUNNING]
    assert running == [second, fourth]
    family.do(second, "x")
    family.do(fourth, "x")
    assert family.state(top) is W.SUCCEEDED
    assert len(family.of("leaf")) == 4


def test_pause_of_a_map_recovers_nothing_and_holds_the_window() -> None:
    family, top = mapped(4, 2)
    first, second = family.of("leaf")
    family.do(first, "x", FAIL)
    third = family.of("leaf")[2]
    family.ask(top, PAUSE)
    family.deliver_all()
    assert (family.state(second), family.state(third)) == (W.PAUSED, W.PAUSED)
    family.ask(top, RESUME)
    family.deliver_all()
    assert family.state(first) is W.FAILED
    assert [family.state(i) for i in (second, third)] == [W.RUNNING] * 2
    assert len(family.of("leaf")) == 3
    for child in (second, third):
        family.do(child, "x")
    family.do(family.of("leaf")[3], "x")
    assert family.state(top) is W.FAILED


def test_item_that_cannot_be_rendered_is_refused_and_the_others_run() -> None:
    """What an item is may make a date of it wrong: that item alone fails."""
    items = ["yyyy", "no date", "MM"]
    params = {"workflow": "leaf", "items": items, "parallel": 1}
    map_task = {"type": "MAP", "params": {**params, "parameters": {"day": "$[${item}]"}}}
    family = Family({"top": {"m": map_task}, "leaf": {"x": {}}})
    top = family.create("top")
    family.deliver_all()
    family.do(family.of("leaf")[0], "x")
    family.do(family.of("leaf")[1], "x")
    task = family.task(top, "m")
    assert task.state is TaskState.FAILED
    assert "1 of 3 items did not succeed" in (task.reason or "")
    assert "no date" in (task.reason or "")
    assert [family.parameters[i]["day"] for i in family.of("leaf")] == ["2026", "01"]


# -- quarantined children -----------------------------------------------------------------------


def test_quarantined_child_holds_no_place_of_its_parent() -> None:
    """Once it is tried again it counts, and no other starts until there is room."""
    family, top = mapped(5, 2)
    first, second = family.of("leaf")
    family.quarantine(first)
    assert len(family.of("leaf")) == 3
    family.quarantine(first, is_quarantined=False)
    family.do(second, "x")
    assert len(family.of("leaf")) == 3  # the first one and the third one
    family.do(first, "x")
    assert len(family.of("leaf")) == 4
    for number in range(2, 5):
        family.do(family.of("leaf")[number], "x")
    assert family.state(top) is W.SUCCEEDED


def test_masters_of_former_versions_ignore_the_news_of_a_quarantine() -> None:
    """They take it for the answer to a former request."""
    family, top = mapped(3, 2)
    first, _ = family.of("leaf")
    before = family.task(top, "m").detail
    family.hear_of_quarantine(first, is_quarantined=None)  # they do not know this field
    assert family.task(top, "m").detail == before


def test_task_does_not_end_while_its_last_child_is_quarantined() -> None:
    family, top = mapped(2, 2)
    first, second = family.of("leaf")
    family.quarantine(first)
    family.do(second, "x")
    assert family.task(top, "m").detail["children"]["0"]["quarantined"]
    assert family.state(top) is W.RUNNING
    family.do(first, "x")  # its report says that it is no longer quarantined
    assert "quarantined" not in family.task(top, "m").detail["children"]["0"]
    assert family.state(top) is W.SUCCEEDED


def test_news_of_a_quarantine_answers_no_request() -> None:
    """A child that was asked to stop has not stopped because it is quarantined."""
    family, top = mapped(3, 2)
    first, second = family.of("leaf")
    family.ask(top, STOP)
    family.hear_of_quarantine(first)
    assert family.task(top, "m").detail["children"]["0"]["state"] == "STOPPING"
    family.deliver_all()
    assert [family.state(i) for i in (top, first, second)] == [W.STOPPED] * 3
    assert len(family.of("leaf")) == 2


def test_stop_ends_without_its_quarantined_children() -> None:
    """They stop when they are repaired, and a resume continues them."""
    family, top = mapped(3, 3)
    first, second, third = family.of("leaf")
    for child in (first, second):
        family.hear_of_quarantine(child)
    family.do(third, "x")
    family.ask(top, STOP)
    assert family.state(top) is W.STOPPED
    task = family.task(top, "m")
    assert task.state is TaskState.KILLED
    assert task.reason == (f"ended without instance {first}, which is quarantined; and 1 more")
    said = of_attempt(task.state, task.reason)
    assert said is not None
    assert said.code is Code.REASON_CHILD_QUARANTINED
    assert said.arguments == {"instance": first, "more": 1}
    assert [family.state(one) for one in (first, second)] == [W.RUNNING] * 2
    family.deliver_all()
    assert [family.state(one) for one in (top, first, second)] == [W.STOPPED] * 3
    family.ask(top, RESUME)
    family.deliver_all()
    for child in (first, second):
        family.do(child, "x")
    assert family.state(top) is W.SUCCEEDED
    assert len(family.of("leaf")) == 3


def test_stop_that_waits_for_a_child_ends_when_that_is_quarantined() -> None:
    family, top = mapped(1, 1)
    (child,) = family.of("leaf")
    family.ask(top, STOP)
    assert family.state(top) is W.STOPPING
    family.hear_of_quarantine(child)
    assert family.state(top) is W.STOPPED
    assert f"instance {child}" in (family.task(top, "m").reason or "")


def test_pause_ends_without_its_quarantined_children() -> None:
    """They pause when they are repaired, and a resume continues them."""
    family, top = mapped(3, 3)
    first, second, third = family.of("leaf")
    for child in (first, second):
        family.hear_of_quarantine(child)
    family.do(third, "x")
    family.ask(top, PAUSE)
    assert family.state(top) is W.PAUSED
    assert family.task(top, "m").state is TaskState.PAUSED
    assert [family.state(one) for one in (first, second)] == [W.RUNNING] * 2
    family.do(first, "x")  # its task ran on
    family.deliver_all()
    assert [family.state(one) for one in (top, second)] == [W.PAUSED] * 2
    family.ask(top, RESUME)
    family.deliver_all()
    family.do(second, "x")
    assert family.state(top) is W.SUCCEEDED
    assert len(family.of("leaf")) == 3


def test_pause_that_waits_for_a_child_ends_when_that_is_quarantined() -> None:
    family, top = mapped(1, 1)
    (child,) = family.of("leaf")
    family.ask(top, PAUSE)
    assert family.state(top) is W.PAUSING
    family.hear_of_quarantine(child)
    assert family.state(top) is W.PAUSED


def test_resume_of_a_paused_run_reaches_the_child_that_is_still_quarantined() -> None:
    """It has two requests then, and the last one counts."""
    family, top = mapped(1, 1)
    (child,) = family.of("leaf")
    family.hear_of_quarantine(child)
    family.ask(top, PAUSE)
    family.ask(top, RESUME)
    assert family.state(top) is W.RUNNING
    family.deliver_all()
    assert family.state(child) is W.RUNNING
    family.do(child, "x")
    assert family.state(top) is W.SUCCEEDED


def test_pause_waits_for_a_quarantined_start() -> None:
    """A later attempt could not name the instance that it becomes."""
    family = Family({"top": {"s": sub("leaf")}, "leaf": {"x": {}}})
    top = family.create("top")
    task_id = family.task(top, "s").id
    assert task_id is not None
    family.send(
        top, ChildChanged(task_id, 0, family.now, None, state=None, ask=-1, is_quarantined=True)
    )
    family.ask(top, PAUSE)
    assert family.state(top) is W.PAUSING
    family.deliver_all()
    assert family.state(top) is W.PAUSED


def test_resume_of_a_stopped_run_waits_for_its_quarantined_child() -> None:
    """It is neither started a second time nor given up."""
    family, top = mapped(1, 1)
    (child,) = family.of("leaf")
    family.hear_of_quarantine(child)
    family.ask(top, STOP)
    family.ask(top, RESUME)
    assert family.state(top) is W.RUNNING
    family.deliver_all()
    assert family.of("leaf") == [child]
    family.do(child, "x")
    assert family.state(top) is W.SUCCEEDED


def test_next_attempt_does_not_take_a_repaired_child_for_quarantined() -> None:
    """It was repaired after the attempt that knew of its quarantine had ended."""
    family, top = mapped(3, 1)
    (first,) = family.of("leaf")
    family.quarantine(first)
    family.ask(top, STOP)
    while others := [line for line in family.lines if line != family.key_of[first]]:
        family.deliver(others[0])
    assert family.state(top) is W.STOPPED
    family.quarantine(first, is_quarantined=False)
    assert {family.state(child) for child in family.of("leaf")} == {W.STOPPED}
    family.ask(top, RESUME)
    family.deliver_all()
    assert [family.state(child) for child in family.of("leaf")].count(W.RUNNING) == 1
    family.ask(top, STOP)
    assert family.state(top) is W.STOPPING  # until the child has stopped


def test_stop_waits_for_a_quarantined_start_to_be_withdrawn() -> None:
    """A later attempt could not name the start: the request to stop settles it."""
    family = Family({"top": {"s": sub("leaf")}, "leaf": {"x": {}}})
    top = family.create("top")
    task_id = family.task(top, "s").id
    assert task_id is not None
    family.send(
        top, ChildChanged(task_id, 0, family.now, None, state=None, ask=-1, is_quarantined=True)
    )
    family.ask(top, STOP)
    assert family.state(top) is W.STOPPING
    family.deliver_all()
    assert family.state(top) is W.STOPPED
