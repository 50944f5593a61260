"""Delays, back-off, timeouts and slots, in examples."""

from datetime import timedelta

from shoal.core.runs.events import (
    PauseRequested,
    RecoverRequested,
    ResumeRequested,
    TaskEnded,
    TaskStarted,
)
from shoal.core.runs.states import TaskSignal, WorkflowState
from tests.unit.core.decide.driving import START, Driver, spec

FAIL = TaskSignal.FAIL


def test_delay_comes_before_the_first_attempt_and_not_before_retries() -> None:
    run = Driver(spec({"a": {"delay": "10s", "retries": 1}}))
    assert run.states() == {"a": "DELAYED"}
    run.pass_time(9)
    assert not run.queue
    run.pass_time(1)
    run.do("a", FAIL)
    assert run.states() == {"a": "QUEUED"}


def test_back_off_grows_up_to_its_limit() -> None:
    task = {"retries": 4, "retry_delay": 10, "retry_backoff": 2, "retry_max_delay": 35}
    run = Driver(spec({"a": task}))
    waits = []
    for _ in range(4):
        run.do("a", FAIL)
        due_at = run.run.attempts["a"].due_at
        assert due_at is not None
        waits.append((due_at - run.now).total_seconds())
        run.pass_time(waits[-1])
    assert waits == [10, 20, 35, 35]


def test_jitter_lengthens_a_delay_by_the_same_for_everybody() -> None:
    def due() -> list[timedelta]:
        run = Driver(
            spec({n: {"retries": 1, "retry_delay": 100, "retry_jitter": 0.5} for n in "abc"})
        )
        for name in "abc":
            run.do(name, FAIL)
        return [(a.due_at or START) - run.now for a in run.run.attempts.values()]

    waits = due()
    assert waits == due()
    assert len(set(waits)) == 3
    assert all(100 <= wait.total_seconds() < 150 for wait in waits)


def test_overdue_task_is_warned_of_once_also_after_a_takeover() -> None:
    run = Driver(spec({"a": {"timeout": 60, "timeout_action": "warn"}}))
    run.claim("a")
    run.take_over()
    run.now += timedelta(seconds=59)
    run.pass_time(0)
    assert run.run.attempts["a"].warned_at is None
    run.now += timedelta(seconds=1)
    run.wakes, due = [], [at for at in run.wakes if at <= run.now]
    assert due, "nobody would look at the timeout"
    run.wakes = due
    run.pass_time(0)
    warned_at = run.run.attempts["a"].warned_at
    assert warned_at == run.now
    run.take_over()
    assert not run.wakes
    run.workers = {run.run.attempts["a"].id or 0: "w1"}
    run.end("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_instance_that_runs_too_long_is_stopped_and_not_timed_again_after_a_resume() -> None:
    run = Driver(spec({"a": {}}, timeout=60, timeout_action="both"))
    run.claim("a")
    run.pass_time(60)
    assert run.state() is WorkflowState.STOPPING
    run.obey_kills()
    assert run.state() is WorkflowState.STOPPED
    run.send(ResumeRequested(run.now))
    assert not [at for at in run.wakes if at > START + timedelta(seconds=60)]
    run.claim("a")
    run.pass_time(600)
    run.end("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_recovered_instance_is_not_stopped_for_the_time_it_lay_there() -> None:
    run = Driver(spec({"a": {}}, timeout=60, timeout_action="stop"))
    run.do("a", FAIL)
    run.now += timedelta(days=1)
    run.send(RecoverRequested(run.now))
    run.take_over()
    run.pass_time(1)
    run.do("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_task_of_a_concurrency_group_waits_for_its_slot() -> None:
    run = Driver(spec({"a": {"concurrency_group": "db", "retries": 1, "delay": 5}}))
    run.pass_time(5)
    assert run.states() == {"a": "BLOCKED"}
    run.take_over()
    assert list(run.slots.values()) == ["db"]
    run.send(PauseRequested(run.now))
    assert run.states() == {"a": "PAUSED"}
    run.send(ResumeRequested(run.now))
    run.grant("a")
    run.do("a", FAIL)
    assert run.states() == {"a": "BLOCKED"}, "each attempt needs a slot of its own"
    run.grant("a")
    run.do("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_clock_of_a_worker_shortens_no_delay() -> None:
    run = Driver(spec({"a": {"retries": 1, "retry_delay": 300}}))
    task_id = run.claim("a")
    long_ago = run.now
    run.workers.pop(task_id)
    run.now += timedelta(minutes=10)
    run.send(TaskEnded(task_id, FAIL, run.now, "w1", started_at=long_ago, ended_at=long_ago))
    assert run.run.attempts["a"].due_at == run.now + timedelta(seconds=300)


def test_clock_of_a_worker_lets_no_timeout_come_early() -> None:
    run = Driver(spec({"a": {"timeout": 60, "timeout_action": "warn"}}))
    task_id = run.take("a", "w1")
    run.send(TaskStarted(task_id, "w1", run.now, run.now - timedelta(minutes=10)))
    attempt = run.run.attempts["a"]
    assert attempt.started_at == attempt.queued_at
    assert max(run.wakes) == run.now + timedelta(seconds=60)


def test_instance_beyond_its_deadline_is_late_once_and_goes_on() -> None:
    run = Driver(spec({"a": {}}))
    run.run.deadline_at = START + timedelta(seconds=60)
    run.take_over()
    run.claim("a")
    run.pass_time(59)
    assert run.run.late_at is None
    run.pass_time(1)
    assert (late_at := run.run.late_at) == run.now
    run.take_over()
    run.pass_time(600)
    assert (run.run.late_at, run.state()) == (late_at, WorkflowState.RUNNING)
    run.end("a")
    assert run.state() is WorkflowState.SUCCEEDED


def test_instance_that_waits_for_others_is_late_as_well() -> None:
    run = Driver(spec({"a": {}}), admitted_at=None)
    run.run.deadline_at = START + timedelta(seconds=60)
    run.take_over()
    run.pass_time(60)
    assert (run.run.late_at, run.state()) == (run.now, WorkflowState.QUEUED)


def test_deadline_counts_for_an_instance_that_goes_on_after_its_end() -> None:
    run = Driver(spec({"a": {}}))
    run.run.deadline_at = START + timedelta(seconds=60)
    run.do("a", FAIL)
    run.pass_time(600)
    assert run.run.late_at is None  # it had ended in time
    run.send(RecoverRequested(run.now))
    run.pass_time(0)
    assert run.run.late_at == run.now
