"""Which tasks go to the worker that reports the end of the one before them."""

from typing import Any

import pytest

from shoal.coordination.queue.entry import Place
from shoal.core.decide import decide
from shoal.core.runs.events import TaskClaimed, TaskEnded
from shoal.core.runs.run import Run
from shoal.core.runs.states import TaskSignal, TaskState
from shoal.master.engine.actions import queue_entry
from shoal.master.engine.eager_dispatch import EagerRequest, behind, held_before, taken_by
from tests.unit.core.decide.driving import Driver, spec

FAN: dict[str, dict[str, Any]] = {
    "a": {},
    "low": {"depends_on": ["a"], "priority": "LOW"},
    "b": {"depends_on": ["a"]},
    "c": {"depends_on": ["a"]},
    "high": {"depends_on": ["a"], "priority": "HIGH"},
    "elsewhere": {"depends_on": ["a"], "worker_group": "other"},
    "later": {"depends_on": ["b"]},
}


def eager(room: int = 10, before: Place | None = None) -> EagerRequest:
    return EagerRequest("w", "default", room, before)


def id_of(run: Run, task: str) -> int:
    found = run.attempts[task].id
    assert found is not None
    return found


def end(run: Run, task: str, signal: TaskSignal, to: EagerRequest) -> list[str]:
    """Let "w" run ``task`` to its end; return which tasks it takes."""
    number = id_of(run, task)
    run.apply(decide(run, TaskClaimed(number, "w", run.created_at)))
    decision = decide(run, TaskEnded(number, signal, run.created_at, worker="w"))
    run.apply(decision)
    return [run.task_of[taken] for taken in taken_by(to, run, number, decision)]


def fan() -> Run:
    return Driver(spec(FAN)).run


def test_what_stands_right_behind_is_taken_in_the_order_of_the_queue() -> None:
    assert end(fan(), "a", TaskSignal.SUCCEED, eager()) == ["high", "b", "c", "low"]


def test_no_more_is_taken_than_there_is_room_for() -> None:
    assert end(fan(), "a", TaskSignal.SUCCEED, eager(2)) == ["high", "b"]
    assert end(fan(), "a", TaskSignal.SUCCEED, eager(0)) == []


def test_several_ends_share_the_room() -> None:
    to = eager(5)
    assert len(end(fan(), "a", TaskSignal.SUCCEED, to)) == 4
    to.taken = {999: 4}  # of another end in the same report
    assert end(fan(), "a", TaskSignal.SUCCEED, to) == ["high"]
    assert end(fan(), "a", TaskSignal.SUCCEED, to) == ["high"]  # decided anew: counts once


@pytest.mark.parametrize(
    ("first", "taken"),
    [("high", []), ("c", ["high", "b"]), ("low", ["high", "b", "c"])],
)
def test_nothing_overtakes_what_waits_in_the_queue(first: str, taken: list[str]) -> None:
    run = fan()
    before = queue_entry(run, run.attempts[first]).place
    assert end(run, "a", TaskSignal.SUCCEED, eager(before=before)) == taken


def test_it_is_the_turn_of_another_project_that_waits() -> None:
    """Unless the task is more urgent; workers of earlier versions name no lane."""
    run = fan()  # runs are alike, also in their ids
    waiting = (run.priority, run.id + 1, 2, 9999)
    request = eager(before=waiting)
    own = queue_entry(run, run.attempts["c"]).lane
    for lane, taken in ((own, 4), (own + 1, 0), (None, 4)):
        request.lane = lane
        request.taken.clear()
        assert len(end(fan(), "a", TaskSignal.SUCCEED, request)) == taken
    request = eager(before=(run.priority + 1, 1, 2, 1))
    request.lane = own + 1
    assert len(end(fan(), "a", TaskSignal.SUCCEED, request)) == 4


def test_an_instance_of_higher_priority_comes_first() -> None:
    run = fan()
    assert end(run, "a", TaskSignal.SUCCEED, eager(before=(run.priority - 1, 999, 4, 9999))) == []


def test_behind_a_failure_nothing_is_taken() -> None:
    """Its task may be run again while what it has set off still runs."""
    run = Driver(spec({"a": {}, "b": {"depends_on": ["a"], "run_when": "any_failed"}})).run
    assert end(run, "a", TaskSignal.FAIL, eager()) == []
    assert run.attempts["b"].state is TaskState.QUEUED
    run.apply(decide(run, TaskClaimed(id_of(run, "b"), "w", run.created_at)))
    assert list(behind(run, id_of(run, "a"), "w")) == []


def test_what_waits_for_other_tasks_too_is_not_taken() -> None:
    run = Driver(spec({"a": {}, "x": {}, "b": {"depends_on": ["a", "x"]}})).run
    assert end(run, "a", TaskSignal.SUCCEED, eager()) == []
    assert end(run, "x", TaskSignal.SUCCEED, eager()) == ["b"]


def test_what_was_queued_before_is_not_taken() -> None:
    tasks = {"a": {}, "x": {}, "b": {"depends_on": ["a", "x"], "run_when": "one_success"}}
    run = Driver(spec(tasks)).run
    assert end(run, "a", TaskSignal.SUCCEED, eager(0)) == []
    assert end(run, "x", TaskSignal.SUCCEED, eager()) == []


def test_a_repeated_report_takes_nothing_new() -> None:
    run = fan()
    end(run, "a", TaskSignal.SUCCEED, eager(0))
    number = id_of(run, "a")
    again = decide(run, TaskEnded(number, TaskSignal.SUCCEED, run.created_at, worker="w"))
    assert taken_by(eager(), run, number, again) == []


def test_what_a_worker_holds_behind_an_attempt() -> None:
    run = fan()
    end(run, "a", TaskSignal.SUCCEED, eager())
    for task, worker in (("b", "w"), ("c", "another"), ("high", "w")):
        run.apply(decide(run, TaskClaimed(id_of(run, task), worker, run.created_at)))
    assert {each.task for each in behind(run, id_of(run, "a"), "w")} == {"b", "high"}
    assert held_before(run, run.attempts["b"]) == [id_of(run, "a")]
    assert held_before(run, run.attempts["c"]) == []
