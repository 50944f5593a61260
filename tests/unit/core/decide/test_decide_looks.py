"""Looks of tasks that wait for something outside: rescheduling, and what is done between two."""

from datetime import timedelta

import pytest

from shoal.core.decide import MAX_LOSSES
from shoal.core.runs.events import (
    ForceRequested,
    KillRequested,
    PauseRequested,
    ResumeRequested,
    StopRequested,
    TaskEnded,
)
from shoal.core.runs.run import Attempt
from shoal.core.runs.states import TaskSignal
from shoal.core.timing import poll_interval
from tests.unit.core.decide.driving import START, Driver, spec

AGAIN = TaskSignal.RESCHEDULE


def look(run: Driver, again_s: float = 60, answer: str = "it is not there", task: str = "a") -> int:
    """One look that finds nothing; return its task instance."""
    task_id = run.claim(task)
    report(run, task_id, again_s, answer)
    return task_id


def report(run: Driver, task_id: int, again_s: float, answer: str = "it is not there") -> None:
    """The end of a look that found nothing."""
    worker = run.workers.pop(task_id, "w1")
    run.send(TaskEnded(task_id, AGAIN, run.now, worker, reason=answer, again_s=again_s))


def waiting(**task: object) -> Driver:
    """A run whose task has looked once."""
    run = Driver(spec({"a": task}))
    look(run)
    return run


def newest(run: Driver, task: str = "a") -> Attempt:
    return run.run.attempts[task]


def test_a_look_that_finds_nothing_is_final_and_another_attempt_looks_later() -> None:
    run = Driver(spec({"a": {"retries": 1}, "b": {"depends_on": ["a"]}}))
    look(run, 60)
    assert run.history["a", 1].state == "RESCHEDULED"
    assert run.states() == {"a": "DELAYED", "b": "WAITING"}
    assert newest(run).number == 2
    assert newest(run).due_at == START + timedelta(seconds=60)
    assert newest(run).reason == "it is not there"
    run.pass_time(59)
    assert not run.queue
    run.pass_time(1)
    run.do("a")
    assert run.states() == {"a": "SUCCEEDED", "b": "QUEUED"}


def test_looks_use_up_no_retries() -> None:
    run = Driver(spec({"a": {"retries": 1}}))
    for _ in range(5):
        look(run, 10)
        run.pass_time(10)
    assert (newest(run).looks, newest(run).failures) == (5, 0)
    run.do("a", TaskSignal.FAIL)
    assert run.states() == {"a": "QUEUED"}
    assert (newest(run).looks, newest(run).failures) == (0, 1)
    look(run, 10)
    run.pass_time(10)
    run.do("a", TaskSignal.FAIL)
    assert run.state() == "FAILED"


def test_report_of_an_earlier_look_is_not_taken_for_the_present_one() -> None:
    run = Driver(spec({"a": {}}))
    first = look(run, 10)
    run.pass_time(10)
    run.claim("a")
    report(run, first, 10)
    run.send(TaskEnded(first, TaskSignal.SUCCEED, run.now, "w1"))
    assert run.states() == {"a": "RUNNING"}
    assert newest(run).number == 2


def test_slot_of_the_concurrency_group_is_free_between_looks() -> None:
    run = Driver(spec({"a": {"concurrency_group": "g"}}))
    run.grant("a")
    look(run, 10)
    assert run.states() == {"a": "DELAYED"}
    run.pass_time(10)
    assert run.states() == {"a": "BLOCKED"}
    run.grant("a")
    assert run.states() == {"a": "QUEUED"}


def test_losses_are_counted_anew_after_a_look() -> None:
    run = Driver(spec({"a": {}}))
    for _ in range(MAX_LOSSES):
        run.do("a", TaskSignal.LOSE)
    look(run, 10)
    run.pass_time(10)
    run.do("a", TaskSignal.LOSE)
    assert run.states() == {"a": "QUEUED"}
    assert (newest(run).looks, newest(run).losses) == (1, 1)


@pytest.mark.parametrize("where", ["delayed", "queued", "claimed", "running"])
def test_timeout_counts_across_looks(where: str) -> None:
    run = Driver(spec({"a": {"timeout": 100}}))
    look(run, 95)
    run.pass_time(50)
    assert run.states() == {"a": "DELAYED"}
    if where != "delayed":
        run.pass_time(45)
    held = set()
    if where == "claimed":
        held = {run.take("a", "w1")}
    elif where == "running":
        held = {run.claim("a")}
    run.take_over()
    run.pass_time(100)
    assert run.to_kill == held
    run.obey_kills()
    assert run.states() == {"a": "FAILED"}
    assert newest(run).reason == "timed out after 1m 40s; the last answer: it is not there"
    assert not run.queue


def test_a_look_that_comes_back_after_the_timeout_has_timed_out() -> None:
    run = Driver(spec({"a": {"timeout": 100}}))
    look(run, 95)
    run.pass_time(95)
    run.claim("a")
    run.pass_time(10)
    report(run, newest(run).id or 0, 60, "still not there")
    assert run.states() == {"a": "FAILED"}
    assert "timed out" in (newest(run).reason or "")


def test_a_failure_begins_the_timeout_anew() -> None:
    run = Driver(spec({"a": {"timeout": 100, "retries": 1}}))
    look(run, 200)
    run.pass_time(100)
    assert run.states() == {"a": "QUEUED"}  # the retry
    look(run, 60)
    run.pass_time(60)
    assert run.states() == {"a": "QUEUED"}
    run.pass_time(39)
    assert run.states() == {"a": "QUEUED"}
    run.pass_time(1)
    assert run.state() == "FAILED"


def test_warning_of_a_long_wait_is_recorded_once() -> None:
    run = Driver(spec({"a": {"timeout": 100, "timeout_action": "warn"}}))
    look(run, 60)
    warned = []
    for _ in range(4):
        run.pass_time(60)
        warned.append(newest(run).warned_at)
        look(run, 60)
    assert warned == [None, *[START + timedelta(seconds=120)] * 3]


def test_kill_between_looks_kills_what_waits() -> None:
    run = waiting()
    run.send(KillRequested("a", run.now))
    assert run.states() == {"a": "KILLED"}
    assert newest(run).reason == "killed by request between two looks"


def test_kill_during_a_look_that_finds_nothing_is_the_end() -> None:
    run = Driver(spec({"a": {}}))
    task_id = run.claim("a")
    run.send(KillRequested("a", run.now))
    report(run, task_id, 10)
    assert run.states() == {"a": "KILLED"}
    assert newest(run).number == 1


def test_stop_between_looks() -> None:
    run = waiting()
    run.send(StopRequested(run.now))
    assert run.state() == "STOPPED"
    assert run.states() == {"a": "KILLED"}


def test_pause_holds_a_wait_and_its_timeout() -> None:
    run = waiting(timeout=100)
    run.send(PauseRequested(run.now))
    assert run.state() == "PAUSED"
    run.pass_time(1000)
    run.send(ResumeRequested(run.now))
    assert run.states() == {"a": "QUEUED"}
    run.pass_time(99)
    assert run.states() == {"a": "QUEUED"}
    run.pass_time(1)
    assert run.states() == {"a": "FAILED"}


def test_look_under_way_when_the_pause_comes_is_followed_by_one_that_is_held() -> None:
    run = Driver(spec({"a": {}}))
    task_id = run.claim("a")
    run.send(PauseRequested(run.now))
    report(run, task_id, 10)
    assert run.state() == "PAUSED"
    assert run.states() == {"a": "PAUSED"}


def test_force_between_looks_lets_the_others_go_on() -> None:
    run = Driver(spec({"a": {}, "b": {"depends_on": ["a"]}}))
    look(run, 10)
    run.pass_time(10)
    assert run.states()["a"] == "QUEUED"
    decision = run.send(ForceRequested("a", run.now, "anna"))
    assert decision.refusal is None
    assert run.states() == {"a": "SUCCEEDED", "b": "QUEUED"}
    assert set(run.queue.values()) == {"b"}


def test_force_of_a_look_under_way_is_refused() -> None:
    run = waiting()
    run.pass_time(60)
    run.claim("a")
    refusal = run.send(ForceRequested("a", run.now, "anna")).refusal
    assert refusal is not None
    assert "between two looks" in refusal


@pytest.mark.parametrize("strategy", ["finish_running", "fail_fast"])
def test_failing_instance_looks_no_more(strategy: str) -> None:
    run = Driver(spec({"a": {}, "b": {}}, on_failure=strategy))
    look(run)
    run.do("b", TaskSignal.FAIL)
    assert run.states() == {"a": "SKIPPED", "b": "FAILED"}
    assert run.state() == "FAILED"


def test_look_that_a_failing_instance_let_finish_is_not_followed() -> None:
    run = Driver(spec({"a": {}, "b": {}}, on_failure="finish_running"))
    task_id = run.claim("a")
    run.do("b", TaskSignal.FAIL)
    report(run, task_id, 10)
    assert run.history["a", 1].state == "RESCHEDULED"
    assert run.states() == {"a": "SKIPPED", "b": "FAILED"}
    assert run.state() == "FAILED"


def test_new_master_waits_for_the_next_look() -> None:
    run = waiting(timeout=100)
    run.take_over()
    assert run.wakes == [START + timedelta(seconds=100), START + timedelta(seconds=60)]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(0.1, 1), (5, 5), (1e12, 7 * 86_400), (0, 60), (-3, 60), (float("nan"), 60)],
)
def test_what_a_worker_says_is_kept_within_bounds(said: float, seconds: float) -> None:
    assert poll_interval.bounded(said) == seconds


def test_intervals_grow_up_to_the_longest_and_never_overflow() -> None:
    grown = [poll_interval.interval_s(60, 2, 300, number) for number in range(5)]
    assert grown == [60, 120, 240, 300, 300]
    assert poll_interval.interval_s(60, 1, 300, 10**6) == 60
    assert poll_interval.interval_s(60, 100, 300, 10**6) == 300
