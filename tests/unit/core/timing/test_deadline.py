"""Owners and deadlines of workflows: what may be one, and when a run should have ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.deadline import instant_of
from shoal.core.definition.model import WorkflowSpec
from shoal.runtime.plugins import check_definition

TASKS = [{"name": "a", "type": "SHELL", "params": {"script": "true"}}]
SIX = datetime(2026, 3, 2, 6, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def spec(**fields: Any) -> WorkflowSpec:
    return WorkflowSpec.model_validate({"name": "w", "tasks": TASKS, **fields})


@pytest.mark.parametrize(
    ("written", "stored"),
    [("4h", 14_400.0), (90, 90.0), ("90", 90.0), ("366d", 31_622_400.0), ("08:00", "08:00")],
)
def test_deadline_is_stored_as_it_is_read_again(written: Any, stored: float | str) -> None:
    found = spec(deadline=written)
    assert found.deadline == stored
    assert found.canonical()["deadline"] == stored
    assert WorkflowSpec.model_validate(found.canonical()) == found


def test_definitions_without_owner_and_deadline_are_what_they_were() -> None:
    assert not {"owner", "deadline"} & spec().canonical().keys()
    assert spec(owner="", deadline=None).digest() == spec().digest()
    assert spec(owner="x").digest() != spec().digest() != spec(deadline="1h").digest()


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("8:00", "'8:00' is not a time of day: write 00:00 to 23:59, as 08:00"),
        ("24:00", "not a time of day"),
        ("08:00:00", "not a time of day"),
        ("08:00\n", "not a time of day"),
        ("soon", "or a time of day such as 08:00"),
        ("-1h", "or a time of day such as 08:00"),
        ("", "or a time of day such as 08:00"),
        (0, "longer than 0"),
        ("367d", "at most 366d"),
        (float("inf"), "or a time of day"),
        (True, "must be a duration such as 90m or 4h, or a time of day such as 08:00"),
        ({"at": "08:00"}, "must be a duration"),
        (["08:00"], "must be a duration"),
    ],
)
def test_what_is_no_deadline_is_refused_with_what_would_be(written: Any, says: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        check_definition({"name": "w", "tasks": TASKS, "deadline": written})
    [problem] = refused.value.problems
    assert problem.path[0] == "deadline"
    assert says in problem.message


@pytest.mark.parametrize("owner", ["a\nb", "\x1b[2J", " a", "a ", "x" * 201, 7, None, ["a"]])
def test_what_is_no_owner_is_refused(owner: Any) -> None:
    with pytest.raises(ValidationError):
        spec(owner=owner)


def test_owner_is_any_short_line() -> None:
    for owner in ("ada@example.org", "the night team, room 12", "張", "x" * 200):
        assert spec(owner=owner).canonical()["owner"] == owner


def test_duration_counts_from_when_the_run_was_due() -> None:
    assert instant_of(5_400.0, SIX, BERLIN) == SIX + timedelta(minutes=90)


@pytest.mark.parametrize(
    ("since", "deadline", "timezone", "until"),
    [
        ("2026-03-02T06:00", "08:00", "UTC", "2026-03-02T08:00"),
        ("2026-03-02T06:00", "08:00", BERLIN, "2026-03-02T07:00"),
        ("2026-03-02T07:00", "08:00", BERLIN, "2026-03-03T07:00"),  # never at once
        ("2026-03-02T23:30", "00:15", BERLIN, "2026-03-03T23:15"),
        ("2026-03-28T12:00", "02:30", BERLIN, "2026-03-29T01:00"),  # skipped: when it is skipped
        ("2026-10-24T12:00", "02:30", BERLIN, "2026-10-25T00:30"),  # there are two: the first
        ("2026-10-25T00:45", "02:30", BERLIN, "2026-10-26T01:30"),
        ("2011-12-29T20:00", "08:00", "Pacific/Apia", "2011-12-30T10:00"),  # a day is left out
    ],
)
def test_time_of_day_is_the_next_one_on_the_clock_of_the_zone(
    since: str, deadline: str, timezone: str, until: str
) -> None:
    found = instant_of(deadline, datetime.fromisoformat(since + "+00:00"), timezone)
    assert (found, found.tzinfo) == (datetime.fromisoformat(until + "+00:00"), UTC)
