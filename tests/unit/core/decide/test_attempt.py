"""A changed attempt is what ``dataclasses.replace`` would make of it."""

from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime

import pytest

from shoal.core.runs.run import Attempt, SkipCause, Termination
from shoal.core.runs.states import TaskState

NOW = datetime(2026, 3, 2, tzinfo=UTC)
OTHERS = Attempt(
    "b", 2, TaskState.FAILED, 7, 1, 2, 3, NOW, NOW, "w", "why", 3, NOW, NOW, NOW,
    SkipCause.BRANCH, True, Termination.KILL, NOW, {"a": "1"}, {"b": 2}, "ml@3",
    1.5, 2_048, "no such file", "0123456789abcdef",
)  # fmt: skip


@pytest.mark.parametrize("name", [each.name for each in fields(Attempt)])
def test_any_field_can_be_changed_and_the_others_stay(name: str) -> None:
    changes = {name: getattr(OTHERS, name)}
    for attempt in (Attempt("a", 1), OTHERS):
        changed = attempt.changed(**changes)
        assert changed == replace(attempt, **changes)
        assert type(changed) is Attempt
    assert Attempt("a", 1).changed(**changes) != Attempt("a", 1)


def test_attempts_have_no_other_fields_and_stay_as_they_are() -> None:
    attempt = Attempt("a", 1)
    with pytest.raises(AttributeError):
        attempt.changed(colour="red")
    with pytest.raises(FrozenInstanceError):
        attempt.changed(id=1).id = 2  # type: ignore[misc]  # that it is frozen is the point
    assert attempt == Attempt("a", 1)
