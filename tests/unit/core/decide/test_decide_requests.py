"""Requests about single tasks, and what they do to the instance, in examples."""

import pytest

from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.runs.events import (
    Admitted,
    Begun,
    ForceRequested,
    KillRequested,
    PauseRequested,
    RerunRequested,
    ResumeRequested,
    StopRequested,
    TaskEnded,
)
from shoal.core.runs.states import TaskSignal, WorkflowState
from tests.unit.core.decide.driving import Driver, spec

FAIL, LOSE = TaskSignal.FAIL, TaskSignal.LOSE
CHAIN = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["b"]}, "side": {}}


def ended(**failures: bool) -> Driver:
    """A run of CHAIN that is over; the named tasks have failed."""
    run = Driver(spec(CHAIN))
    for task in ("side", "a", "b", "c"):
        if task in run.queue.values():
            run.do(task, FAIL if failures.get(task) else TaskSignal.SUCCEED)
    return run


def test_killed_task_is_neither_retried_nor_resubmitted_and_others_go_on() -> None:
    run = Driver(spec({"a": {"retries": 3}, "b": {"depends_on": ["a"]}, "side": {}}))
    task_id = run.claim("a")
    run.send(KillRequested("a", run.now))
    assert run.to_kill == {task_id}
    run.to_kill.clear()
    run.take_over()
    assert run.to_kill == {task_id}, "the request outlives the master that took it"
    run.workers.pop(task_id)
    run.send(TaskEnded(task_id, LOSE, run.now))
    assert run.states() == {"a": "KILLED", "b": "SKIPPED", "side": "QUEUED"}
    run.do("side")
    assert run.state() is WorkflowState.FAILED


def test_task_that_waits_or_is_queued_can_be_killed_at_once() -> None:
    run = Driver(spec(CHAIN))
    run.send(KillRequested("side", run.now))
    run.send(KillRequested("b", run.now))
    assert set(run.queue.values()) == {"a"}
    assert run.states() == {"a": "QUEUED", "b": "KILLED", "c": "SKIPPED", "side": "KILLED"}


def test_forced_task_counts_as_a_success_and_the_rest_follows() -> None:
    run = ended(a=True)
    assert run.state() is WorkflowState.FAILED
    run.send(ForceRequested("a", run.now, "eva"))
    attempt = run.run.attempts["a"]
    assert (attempt.number, attempt.state, attempt.forced) == (2, "SUCCEEDED", True)
    assert "eva" in (attempt.reason or "")
    assert run.history["a", 1].state == "FAILED", "the old attempt stays as it was"
    run.do("b")
    run.do("c")
    assert run.state() is WorkflowState.SUCCEEDED


def test_forcing_the_last_failure_ends_the_instance() -> None:
    run = ended(c=True)
    run.send(ForceRequested("c", run.now))
    assert run.state() is WorkflowState.SUCCEEDED


def test_rerun_of_tasks_opens_new_attempts_in_the_same_instance() -> None:
    run = ended()
    run.send(RerunRequested(Selection(("b",), SelectionMode.DOWNSTREAM), run.now))
    assert run.state() is WorkflowState.RUNNING
    run.do("b")
    run.do("c")
    assert run.state() is WorkflowState.SUCCEEDED
    numbers = {a.task: a.number for a in run.run.attempts.values()}
    assert numbers == {"a": 1, "b": 2, "c": 2, "side": 1}


def test_named_task_reruns_whatever_came_before_it_and_stays_ready() -> None:
    run = ended(a=True)
    run.send(RerunRequested(Selection(("b",)), run.now))
    assert run.states()["b"] == "QUEUED"
    run.send(PauseRequested(run.now))
    run.send(ResumeRequested(run.now))
    run.do("b", LOSE)
    run.do("b")
    assert run.states() == {"a": "FAILED", "b": "SUCCEEDED", "c": "SKIPPED", "side": "SUCCEEDED"}
    assert run.state() is WorkflowState.FAILED


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        (lambda r: KillRequested("a", r.now), "the instance is SUCCEEDED"),
        (lambda r: KillRequested("nobody", r.now), "no such task"),
        (lambda r: ForceRequested("a", r.now), "the instance is SUCCEEDED"),
        (lambda r: RerunRequested(Selection(("x",)), r.now), "no task x"),
    ],
)
def test_requests_that_make_no_sense_are_refused(request_: object, part: str) -> None:
    run = ended()
    assert callable(request_)
    decision = run.send(request_(run))
    assert part in (decision.refusal or "")
    assert run.state() is WorkflowState.SUCCEEDED


def test_rerun_that_the_strategy_would_stop_is_refused() -> None:
    run = Driver(spec({"a": {}, "b": {}}, on_failure="finish_running"))
    run.claim("b")
    run.do("a", FAIL)
    run.end("b")
    decision = run.send(RerunRequested(Selection(("b",)), run.now))
    assert "finish_running" in (decision.refusal or "")
    assert run.states() == {"a": "FAILED", "b": "SUCCEEDED"}


def test_instance_that_waits_for_others_starts_when_it_is_admitted() -> None:
    waiting = Driver(spec({"a": {}}), admitted_at=None)
    waiting.take_over()
    assert waiting.state() is WorkflowState.QUEUED
    assert not waiting.queue
    refused = waiting.send(PauseRequested(waiting.now))
    assert "waits for other runs" in (refused.refusal or "")
    waiting.send(Admitted(waiting.now))
    waiting.send(Admitted(waiting.now))
    waiting.send(Begun(waiting.now))
    assert waiting.run.admitted_at == waiting.now
    waiting.do("a")
    assert waiting.state() is WorkflowState.SUCCEEDED


def test_instance_that_waits_for_others_can_be_stopped() -> None:
    run = Driver(spec({"a": {}}), admitted_at=None)
    decision = run.send(StopRequested(run.now, "superseded by instance 7"))
    assert run.state() is WorkflowState.STOPPED
    assert decision.reason == "stopped: superseded by instance 7"


def test_resuming_does_not_retry_a_failure_that_would_be_the_same() -> None:
    run = Driver(spec({"a": {"retries": 1}, "b": {}}))
    number = run.claim("a")
    run.claim("b")
    run.send(StopRequested(run.now))
    worker = run.workers.pop(number)
    run.send(TaskEnded(number, FAIL, run.now, worker, permanent=True))
    run.obey_kills()
    run.send(ResumeRequested(run.now))
    run.do("b")
    assert (run.state(), run.run.attempts["a"].number) == (WorkflowState.FAILED, 1)


def test_stop_does_not_eat_the_retries_of_what_failed_meanwhile() -> None:
    run = Driver(spec({"a": {"retries": 1}, "b": {}}))
    run.claim("a")
    run.claim("b")
    run.send(StopRequested(run.now))
    run.end("a", FAIL)
    run.obey_kills()
    assert run.state() is WorkflowState.STOPPED
    run.send(ResumeRequested(run.now))
    run.do("a")
    run.do("b")
    assert run.state() is WorkflowState.SUCCEEDED
