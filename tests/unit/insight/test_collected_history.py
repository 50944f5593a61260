"""What the history of a cluster says of the next attempts."""

from typing import Any

import pytest

from shoal.client import simulation
from shoal.client.simulation import MOST_SAMPLES, quantiles, start_s


def attempt(task: str, state: str, seconds: float, **fields: Any) -> Any:
    """An attempt as the API lists it, started at 06:00:00."""
    found = {
        "project": "default",
        "workflow": "w",
        "task": task,
        "state": state,
        "looks": 0,
        "due_at": None,
        "waiting_since": None,
        "queued_at": "2026-03-02T05:59:59Z",
        "started_at": "2026-03-02T06:00:00Z",
        "finished_at": f"2026-03-02T06:00:{seconds:09.6f}Z",
    }
    return {**found, **fields}


def test_lengths_and_failures_are_told_apart() -> None:
    ended = [attempt("a", "SUCCEEDED", seconds) for seconds in (9, 3, 6)]
    ended += [attempt("a", "FAILED", 1.5), attempt("b", "SUCCEEDED", 4)]
    found = simulation._histories(ended)
    assert found["default/w", "a"].seconds == (3.0, 6.0, 9.0)
    assert found["default/w", "a"].failed_seconds == (1.5,)
    assert found["default/w", "a"].failure == 0.25
    assert found["default/w", "a"].looks == ()
    assert found["default/w", "b"].failure == 0.0


def test_looks_of_a_task_that_waits() -> None:
    times = {
        "queued_at": "2026-03-02T06:00:00Z",
        "waiting_since": "2026-03-02T05:58:00Z",
        "due_at": "2026-03-02T06:00:00Z",
    }
    looks = [attempt("wait", "RESCHEDULED", 1), attempt("wait", "RESCHEDULED", 1, looks=1)]
    found = simulation._histories([*looks, attempt("wait", "SUCCEEDED", 1, looks=2, **times)])
    assert found["default/w", "wait"].looks == (2,)
    assert found["default/w", "wait"].again_s == (60.0,)


def test_many_lengths_become_quantiles_that_keep_the_ends() -> None:
    values = [float(value) for value in range(10_000)]
    found = quantiles(values[::-1])
    assert len(found) == MOST_SAMPLES
    assert (found[0], found[-1]) == (0.0, 9_999.0)
    assert found[MOST_SAMPLES // 2] == pytest.approx(5_000, rel=0.02)


def test_the_start_of_a_program_is_what_the_shortest_waits_took() -> None:
    assert start_s([]) == 0.0
    assert start_s([0.02] * 50 + [30.0] * 50) == pytest.approx(0.02)
