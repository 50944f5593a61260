from dataclasses import replace
from pathlib import Path

import pytest

from shoal.worker.processes.program import ExitRecord, LaunchRequest, ProcessOutcome
from shoal.worker.results.results import as_json, was_interrupted
from shoal.worker.supervisor.causes import INTERRUPTIONS, EndCause

REQUEST = LaunchRequest(
    id="7",
    argv=["true"],
    env={"A": "b"},
    cwd=Path("/"),
    log_path=Path("/l"),
    record_path=Path("/r"),
)
RECORD = {
    "id": "7",
    "outcome": "FAILED",
    "cause": "EXITED",
    "exit_code": 3,
    "signal": None,
    "reason": "exit code 3",
    "timed_out": False,
    "started_at": 1.0,
    "finished_at": 2.0,
    "max_rss_kb": 10,
    "cpu_s": 0.5,
    "context": {"partition": 1},
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"id": "../7"}, "slug"),
        ({"argv": []}, "argv"),
        ({"argv": "true"}, "argv"),
        ({"argv": ["tr\0ue"]}, "NUL"),
        ({"env": {"A": "\0"}}, "NUL"),
        ({"env": {"": "x"}}, "empty"),
        ({"env": {"A=B": "x"}}, "="),
        ({"cwd": Path("relative")}, "absolute"),
        ({"log_path": Path("relative")}, "absolute"),
        ({"record_path": Path("relative")}, "absolute"),
        ({"stdin_path": Path("relative")}, "absolute"),
        ({"timeout_s": 0}, "positive"),
        ({"timeout_s": float("nan")}, "positive"),
    ],
)
def test_requests_that_cannot_work_are_refused_at_once(
    change: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        replace(REQUEST, **change)  # type: ignore[arg-type]  # wrong values are the subject


def test_an_exit_record_is_read_from_its_file_form() -> None:
    record = ExitRecord.from_json(RECORD)
    assert record.outcome is ProcessOutcome.FAILED
    assert (record.exit_code, record.context, record.durable) == (3, {"partition": 1}, True)


@pytest.mark.parametrize("cause", EndCause)
def test_cause_of_an_end_is_in_its_record_and_alone_decides(cause: EndCause) -> None:
    stored = {**RECORD, "outcome": "KILLED", "reason": "on request: x", "cause": cause.value}
    record = ExitRecord.from_json(stored)
    assert (record.cause, record.reason) == (cause, "on request: x")
    assert was_interrupted(record) is (cause in INTERRUPTIONS)
    assert {key: as_json(record)[key] for key in stored} == stored


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "SOMETHING"},
        {"unknown": 1},
        {"outcome": None},
        {"cause": "SOMETHING"},
        {"cause": None},
    ],
    ids=str,
)
def test_something_else_is_no_exit_record(change: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        ExitRecord.from_json({**RECORD, **change})
    with pytest.raises(ValueError, match="not an exit record"):
        ExitRecord.from_json({"outcome": "FAILED"})
