"""What a workflow instance does next, in examples."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shoal.core.decide import MAX_LOSSES
from shoal.core.runs.events import (
    Begun,
    KillRequested,
    PauseRequested,
    RecoverRequested,
    ResumeRequested,
    StopRequested,
    TaskClaimed,
    TaskEnded,
    TaskRequeued,
    TaskStarted,
)
from shoal.core.runs.run import Attempt
from shoal.core.runs.states import TaskSignal, TaskState, WorkflowState
from shoal.core.runs.why.fingerprints import fingerprint
from tests.unit.core.decide.driving import Driver, spec

FAIL, KILL, LOSE = TaskSignal.FAIL, TaskSignal.KILL, TaskSignal.LOSE
DIAMOND = {
    "a": {},
    "b": {"depends_on": ["a"]},
    "c": {"depends_on": ["a"]},
    "d": {"depends_on": ["b", "c"]},
}


def test_diamond_runs_in_dependency_order() -> None:
    run = Driver(spec(DIAMOND))
    assert set(run.queue.values()) == {"a"}
    run.do("a")
    assert set(run.queue.values()) == {"b", "c"}
    run.do("c")
    assert set(run.queue.values()) == {"b"}
    run.do("b")
    run.do("d")
    assert run.state() is WorkflowState.SUCCEEDED


def test_failure_skips_what_depends_on_it_and_nothing_else() -> None:
    run = Driver(spec(DIAMOND | {"e": {"depends_on": ["d"]}}))
    run.do("a")
    run.do("b", FAIL)
    assert run.states()["d"] == run.states()["e"] == "SKIPPED"
    assert run.run.attempts["d"].reason == "upstream task b failed"
    run.do("c")
    assert run.state() is WorkflowState.FAILED


def test_retry_waits_for_its_delay_and_is_a_new_attempt() -> None:
    run = Driver(spec({"a": {"retries": 2, "retry_delay": "30s"}}))
    run.do("a", FAIL)
    assert run.states() == {"a": "UP_FOR_RETRY"}
    assert run.run.attempts["a"].number == 2
    run.pass_time(29)
    assert not run.queue
    run.pass_time(1)
    run.do("a", FAIL)
    run.pass_time(30)
    run.do("a", FAIL)
    assert run.state() is WorkflowState.FAILED
    assert [run.history["a", n].state for n in (1, 2, 3)] == [TaskState.FAILED] * 3


def ended(signal: TaskSignal, **found: Any) -> Attempt:
    run = Driver(spec({"a": {}, "b": {}}))
    number = run.claim("a")
    del run.workers[number]
    run.send(TaskEnded(number, signal, run.now, "w1", **found))
    return run.history["a", 1]


@pytest.mark.parametrize("signal", [TaskSignal.SUCCEED, FAIL, KILL, LOSE])
def test_attempt_keeps_what_it_used_however_it_ended(signal: TaskSignal) -> None:
    attempt = ended(signal, cpu_s=0.25, max_rss_kb=12_345)
    assert (attempt.cpu_s, attempt.max_rss_kb) == (0.25, 12_345)
    old = ended(signal)  # of a worker that does not say
    assert (old.cpu_s, old.max_rss_kb, old.error_line, old.fingerprint) == (None, None, None, None)


@pytest.mark.parametrize(
    ("signal", "is_kept"),
    [(FAIL, True), (LOSE, True), (KILL, False), (TaskSignal.SUCCEED, False)],
)
def test_only_what_failed_or_was_lost_has_an_error_line(signal: TaskSignal, is_kept: bool) -> None:
    attempt = ended(signal, error_line="KeyError: 'a'")
    line = "KeyError: 'a'" if is_kept else None
    assert (attempt.error_line, attempt.fingerprint) == (line, line and fingerprint(line))


def test_new_attempt_has_no_error_line_and_has_used_nothing_yet() -> None:
    run = Driver(spec({"a": {"retries": 1}}))
    number = run.claim("a")
    del run.workers[number]
    run.send(TaskEnded(number, FAIL, run.now, "w1", cpu_s=1.0, max_rss_kb=1, error_line="x"))
    new = run.run.attempts["a"]
    assert (new.number, new.cpu_s, new.max_rss_kb) == (2, None, None)
    assert (new.error_line, new.fingerprint) == (None, None)


def test_failure_that_would_be_the_same_is_not_retried_until_a_person_says_so() -> None:
    run = Driver(spec({"a": {"retries": 2}}))
    number = run.claim("a")
    run.workers.pop(number)
    run.send(TaskEnded(number, FAIL, run.now, "w1", "no such table", 65, permanent=True))
    assert (run.state(), run.run.attempts["a"].number) == (WorkflowState.FAILED, 1)
    run.send(RecoverRequested(run.now))
    run.do("a", FAIL)
    assert run.run.attempts["a"].number == 3  # with all its retries again
    run.do("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_lost_attempt_runs_again_without_using_up_retries() -> None:
    run = Driver(spec({"a": {"retries": 1}}))
    run.do("a", LOSE)
    assert run.run.attempts["a"].failures == 0
    run.do("a", FAIL)
    run.do("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_what_may_have_taken_effect_is_not_run_again_by_itself_after_a_loss() -> None:
    run = Driver(spec({"a": {"retries": 1}, "b": {}}))
    run.run.plan = replace(run.run.plan, once=frozenset({"a"}))
    number = run.claim("a")
    run.workers.pop(number)
    run.send(TaskEnded(number, LOSE, run.now, "w1", "worker w1 is gone"))
    run.do("b")
    assert (run.state(), run.states()["a"]) == (WorkflowState.FAILED, "LOST")
    reason = run.run.attempts["a"].reason
    assert reason == "worker w1 is gone; not run again by itself: it may have taken effect"
    run.send(RecoverRequested(run.now))
    run.do("a", FAIL)  # a failure is known to be one: its retries stay
    run.do("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_task_that_keeps_killing_its_workers_is_given_up() -> None:
    run = Driver(spec({"a": {}}))
    for _ in range(MAX_LOSSES + 1):
        run.do("a", LOSE)
    assert run.state() is WorkflowState.FAILED
    assert run.states() == {"a": "LOST"}


def test_results_of_given_up_workers_and_repeated_results_change_nothing() -> None:
    run = Driver(spec({"a": {}, "b": {"depends_on": ["a"]}}))
    first = run.claim("a", "w1")
    run.workers.pop(first)
    run.send(TaskEnded(first, LOSE, run.now))  # declared lost, queued again
    late = run.send(TaskEnded(first, TaskSignal.SUCCEED, run.now, "w1"))
    assert late.changes_nothing
    second = run.claim("a", "w2")
    stolen = run.send(TaskEnded(second, FAIL, run.now, "w1"))
    assert stolen.changes_nothing
    run.end("a")
    again = run.send(TaskEnded(second, FAIL, run.now, "w2"))
    assert again.changes_nothing
    assert run.states()["a"] == "SUCCEEDED"


def test_second_claim_of_one_attempt_changes_nothing() -> None:
    run = Driver(spec({"a": {}}))
    task_id = run.claim("a", "w1")
    assert run.send(TaskClaimed(task_id, "w2", run.now)).changes_nothing
    assert run.run.attempts["a"].worker == "w1"


def test_attempt_that_its_worker_returns_is_queued_again_and_for_anybody() -> None:
    run = Driver(spec({"a": {}}))
    task_id = run.take("a", "w1")
    first = run.run.attempts["a"]
    run.now += timedelta(minutes=5)
    run.send(returned(run, "a", "w1"))
    again = run.run.attempts["a"]
    assert (again.state, again.worker, again.number) == ("QUEUED", None, first.number)
    assert first.queued_at is not None
    assert again.queued_at is not None
    # It has waited all this time, and still this is another hold.
    assert timedelta(0) < again.queued_at - first.queued_at < timedelta(seconds=1)
    run.send(TaskClaimed(task_id, "w2", run.now))
    assert run.run.attempts["a"].worker == "w2"


@pytest.mark.parametrize("wrong", ["worker", "hold", "state"])
def test_only_the_worker_that_holds_an_attempt_and_has_not_begun_returns_it(wrong: str) -> None:
    run = Driver(spec({"a": {}}))
    task_id = run.take("a", "w1")
    late = returned(run, "a", "w1")
    if wrong == "worker":
        late = replace(late, worker="w2")
    elif wrong == "hold":  # it was returned before, and the same worker has taken it again
        run.send(late)
        run.send(TaskClaimed(task_id, "w1", run.now))
    else:
        run.send(TaskStarted(task_id, "w1", run.now))
    assert run.send(late).changes_nothing


def test_attempt_that_is_returned_when_it_is_to_die_is_killed() -> None:
    run = Driver(spec({"a": {}, "b": {}}))
    run.take("a", "w1")
    run.send(KillRequested("a", run.now))
    run.send(returned(run, "a", "w1"))
    assert run.states()["a"] == "KILLED"
    run.take("b", "w1")
    run.send(StopRequested(run.now))
    run.send(returned(run, "b", "w1"))
    assert (run.states()["b"], run.run.state) == ("KILLED", "STOPPED")


def test_attempt_that_is_returned_during_a_pause_is_held_by_it() -> None:
    run = Driver(spec({"a": {}}))
    run.take("a", "w1")
    run.send(PauseRequested(run.now))
    run.send(returned(run, "a", "w1"))
    assert (run.states()["a"], run.run.state) == ("PAUSED", "PAUSED")


def test_attempt_that_is_returned_after_a_failure_is_not_started_any_more() -> None:
    run = Driver(spec({"a": {}, "b": {}}, on_failure="finish_running"))
    run.take("b", "w1")
    run.do("a", FAIL)
    run.send(returned(run, "b", "w1"))
    assert (run.states()["b"], run.run.state) == ("SKIPPED", "FAILED")


def test_attempt_that_is_returned_after_a_failure_is_not_held_by_a_pause() -> None:
    run = Driver(spec({"a": {}, "b": {}}, on_failure="finish_running"))
    run.take("b", "w1")
    run.do("a", FAIL)
    run.send(PauseRequested(run.now))
    run.send(returned(run, "b", "w1"))
    assert (run.states()["b"], run.run.state) == ("SKIPPED", "FAILED")


def returned(run: Driver, task: str, worker: str) -> TaskRequeued:
    """The event of a worker that has not begun with the newest attempt of ``task``."""
    attempt = run.run.attempts[task]
    assert attempt.id is not None
    assert attempt.queued_at is not None
    return TaskRequeued(attempt.id, worker, attempt.queued_at, run.now)


def test_fail_fast_kills_the_running_and_starts_no_more() -> None:
    run = Driver(
        spec(
            {
                "a": {},
                "b": {},
                "c": {"depends_on": ["b"]},
                "clean": {"depends_on": ["a", "b"], "run_when": "always"},
            },
            on_failure="fail_fast",
        )
    )
    run.claim("b")
    run.do("a", FAIL)
    assert run.states()["c"] == "SKIPPED"
    run.obey_kills()
    assert run.states()["b"] == "KILLED"
    run.do("clean")
    assert run.state() is WorkflowState.FAILED


def test_finish_running_lets_running_tasks_end_but_starts_no_more() -> None:
    run = Driver(
        spec({"a": {}, "b": {}, "c": {"depends_on": ["b"]}, "q": {}}, on_failure="finish_running")
    )
    run.claim("b")
    run.do("a", FAIL)
    assert run.states()["q"] == "SKIPPED"
    assert not run.queue
    assert not run.to_kill
    run.end("b")
    assert run.states() == {"a": "FAILED", "b": "SUCCEEDED", "c": "SKIPPED", "q": "SKIPPED"}
    assert run.state() is WorkflowState.FAILED


def test_ignored_failure_lets_the_workflow_succeed_and_says_so() -> None:
    run = Driver(spec({"a": {}, "b": {"depends_on": ["a"]}}, on_failure="ignore"))
    run.do("a", FAIL)
    decision = run.do("b")
    assert run.state() is WorkflowState.SUCCEEDED
    assert decision.reason is not None
    assert "1 task failed" in decision.reason


@pytest.mark.parametrize(
    ("rule", "signals", "expected"),
    [
        ("all_done", (FAIL, TaskSignal.SUCCEED), "QUEUED"),
        ("one_success", (FAIL, TaskSignal.SUCCEED), "QUEUED"),
        ("one_success", (FAIL, FAIL), "SKIPPED"),
        ("any_failed", (TaskSignal.SUCCEED, FAIL), "QUEUED"),
        ("any_failed", (TaskSignal.SUCCEED, TaskSignal.SUCCEED), "SKIPPED"),
        ("always", (FAIL, FAIL), "QUEUED"),
        ("all_success", (TaskSignal.SUCCEED, FAIL), "SKIPPED"),
    ],
)
def test_run_conditions(rule: str, signals: tuple[TaskSignal, ...], expected: str) -> None:
    run = Driver(
        spec({"a": {}, "b": {}, "c": {"depends_on": ["a", "b"], "run_when": rule}, "other": {}})
    )
    for task, signal in zip("ab", signals, strict=True):
        run.do(task, signal)
    assert run.states()["c"] == expected


def test_disabled_task_counts_as_done() -> None:
    run = Driver(spec({"a": {"enabled": False}, "b": {"depends_on": ["a"]}}))
    assert run.states()["a"] == "SKIPPED"
    run.do("b")
    assert run.state() is WorkflowState.SUCCEEDED


def test_pause_lets_running_tasks_end_and_holds_the_rest() -> None:
    run = Driver(spec(DIAMOND | {"x": {}}))
    run.claim("a")
    run.send(PauseRequested(run.now))
    assert run.states()["x"] == "PAUSED"
    assert not run.queue
    assert run.state() is WorkflowState.PAUSING
    run.end("a")
    assert run.state() is WorkflowState.PAUSED
    run.send(ResumeRequested(run.now))
    assert set(run.queue.values()) == {"b", "c", "x"}
    for task in "bcdx":
        run.do(task)
    assert run.state() is WorkflowState.SUCCEEDED


def test_pause_of_a_run_that_just_ends_ends_it() -> None:
    run = Driver(spec({"a": {}}))
    run.claim("a")
    run.send(PauseRequested(run.now))
    run.end("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_retry_that_falls_into_a_pause_is_held() -> None:
    run = Driver(spec({"a": {"retries": 1, "retry_delay": 5}}))
    run.claim("a")
    run.send(PauseRequested(run.now))
    run.end("a", FAIL)
    assert (run.state(), run.states()["a"]) == (WorkflowState.PAUSED, "PAUSED")
    run.send(ResumeRequested(run.now))
    run.pass_time(5)
    run.do("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_stop_kills_and_resume_runs_the_killed_again() -> None:
    run = Driver(spec(DIAMOND))
    run.do("a")
    run.claim("b")
    run.send(StopRequested(run.now))
    assert not run.queue
    assert run.state() is WorkflowState.STOPPING
    run.obey_kills()
    assert run.state() is WorkflowState.STOPPED
    assert run.states() == {"a": "SUCCEEDED", "b": "KILLED", "c": "KILLED", "d": "KILLED"}
    run.send(ResumeRequested(run.now))
    for task in "bcd":
        run.do(task)
    assert run.state() is WorkflowState.SUCCEEDED
    assert run.run.attempts["a"].number == 1


def test_stop_of_a_worker_that_died_ends_as_stopped() -> None:
    run = Driver(spec({"a": {}}))
    run.claim("a")
    run.send(StopRequested(run.now))
    run.end("a", LOSE)
    assert run.state() is WorkflowState.STOPPED


def test_recover_runs_failed_and_skipped_tasks_and_keeps_successes() -> None:
    run = Driver(spec(DIAMOND))
    run.do("a")
    run.do("b", FAIL)
    run.do("c")
    assert run.state() is WorkflowState.FAILED
    run.send(RecoverRequested(run.now))
    assert set(run.queue.values()) == {"b"}
    run.do("b")
    run.do("d")
    assert run.state() is WorkflowState.SUCCEEDED
    assert {n: a.number for n, a in run.run.attempts.items()} == {"a": 1, "b": 2, "c": 1, "d": 2}


def test_recover_while_other_branches_run() -> None:
    run = Driver(spec({"a": {}, "b": {"depends_on": ["a"]}, "long": {}}))
    run.claim("long")
    run.do("a", FAIL)
    run.send(RecoverRequested(run.now))
    run.do("a")
    run.do("b")
    run.end("long")
    assert run.state() is WorkflowState.SUCCEEDED


@pytest.mark.parametrize(
    ("request_type", "words"),
    [
        (PauseRequested, "cannot pause"),
        (StopRequested, "cannot stop"),
        (ResumeRequested, "cannot resume"),
        (RecoverRequested, "cannot recover"),
    ],
)
def test_requests_that_make_no_sense_are_refused_with_the_reason(
    request_type: type, words: str
) -> None:
    run = Driver(spec({"a": {}}))
    run.do("a")
    decision = run.send(request_type(run.now))
    assert decision.refusal is not None
    assert words in decision.refusal
    assert "SUCCEEDED" in decision.refusal
    assert decision.changes_nothing


def test_recover_of_a_healthy_run_is_refused() -> None:
    run = Driver(spec({"a": {}}))
    assert run.send(RecoverRequested(run.now)).refusal
    assert run.state() is WorkflowState.RUNNING


def test_takeover_derives_the_actions_again() -> None:
    run = Driver(spec({"a": {}, "b": {}, "c": {"retries": 1, "retry_delay": 60}}))
    run.claim("b")
    run.do("c", FAIL)
    run.queue.clear()
    run.wakes.clear()
    decision = run.send(Begun(run.now))
    assert decision.changes_nothing
    assert set(run.queue.values()) == {"a"}
    assert run.wakes == [run.now + timedelta(seconds=60)]
    run.send(StopRequested(run.now))
    run.to_kill.clear()
    run.send(Begun(run.now))
    assert {run.run.task_of[i] for i in run.to_kill} == {"b"}
