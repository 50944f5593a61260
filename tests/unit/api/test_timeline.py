"""The critical path of a run."""

from datetime import UTC, datetime, timedelta

from shoal.api.operations.runs.timeline import critical_path
from shoal.core.runs.records import TaskInstance
from shoal.core.runs.states import TaskState

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def task(name: str, start: int | None, end: int | None) -> TaskInstance:
    """A task that worked from one minute to another."""
    begun, ended = (None if m is None else NOON + timedelta(minutes=m) for m in (start, end))
    state = TaskState.SUCCEEDED if end is not None else TaskState.SKIPPED
    return TaskInstance(
        1,
        1,
        "p",
        "w",
        name,
        "SHELL",
        1,
        state,
        "default",
        None,
        None,
        None,
        None,
        None,
        begun,
        ended,
    )


def test_path_goes_back_from_the_last_end_by_the_last_ends_before_it() -> None:
    upstream = {"a": (), "b": (), "c": ("a", "b"), "d": ("a",), "e": ("c",)}
    newest = {
        "a": task("a", 0, 5),
        "b": task("b", 0, 9),
        "c": task("c", 9, 12),
        "d": task("d", 5, 11),
        "e": task("e", None, None),
    }
    assert critical_path(upstream, newest) == ["b", "c"]
    newest["d"] = task("d", 5, 30)
    assert critical_path(upstream, newest) == ["a", "d"]


def test_skipped_tasks_are_passed_through() -> None:
    upstream = {"a": (), "b": ("a",), "c": ("b",)}
    newest = {"a": task("a", 0, 5), "b": task("b", None, None), "c": task("c", 6, 7)}
    assert critical_path(upstream, newest) == ["a", "c"]
    assert critical_path(upstream, {"a": task("a", None, None)}) == []
