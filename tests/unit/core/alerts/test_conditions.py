"""Deadlines of alert rules, fixed and usual ones, and the other conditions that rules watch."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.alerts.conditions import Deadline, SuccessRate, WatchedRun, missed, silent
from shoal.core.alerts.rules import RuleSpec

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)  # clocks change in Berlin on the 29th
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_fixed_deadline_is_the_last_that_has_passed() -> None:
    due = Deadline(at="07:30").last(MONDAY + 8 * HOUR, ())
    assert due is not None
    assert (due.day, due.at) == (date(2026, 3, 2), MONDAY + 7.5 * HOUR)
    assert due.since == due.at - DAY
    before = Deadline(at="07:30").last(MONDAY + 7 * HOUR, ())
    assert before is not None
    assert before.day == date(2026, 3, 1)


def test_deadline_is_by_the_clock_of_its_zone() -> None:
    noon = datetime(2026, 3, 29, 12, tzinfo=UTC)
    due = Deadline(at="02:30", timezone="Europe/Berlin").last(noon, ())
    assert due is not None
    assert due.at == datetime(2026, 3, 29, 1, tzinfo=UTC)  # that clock skips half past two
    assert due.since == datetime(2026, 3, 28, 1, 30, tzinfo=UTC)


def test_deadline_has_days() -> None:
    due = Deadline(at="07:30", days=("FRI",)).last(MONDAY, ())
    assert due is not None
    assert due.day == date(2026, 2, 27)


def past(*hours: float, first: datetime = MONDAY - 40 * DAY) -> list[WatchedRun]:
    """A run at each midnight, and how many hours later it was there."""
    return [
        WatchedRun(first + number * DAY, first + number * DAY + hour * HOUR)
        for number, hour in enumerate(hours)
    ]


def test_usual_deadline_is_when_so_many_were_there() -> None:
    runs = past(*(1 + number / 100 for number in range(100)))
    deadline = Deadline(percentile=95, runs=100, margin="10m")
    due = deadline.last(MONDAY + 12 * HOUR, runs)
    assert due is not None
    assert due.at == MONDAY + (1 + 0.94) * HOUR + timedelta(minutes=10)
    assert due.since < MONDAY <= due.since + timedelta(seconds=1)  # a run at midnight counts
    assert Deadline(percentile=100).last(MONDAY, past(*[30.0] * 9)) is not None


def test_runs_that_made_up_for_an_outage_are_not_learnt_from() -> None:
    """Four days are caught up in the evening of the last one."""
    runs = past(*[2.0] * 26, 98.0, 74.0, 50.0, 26.0, first=MONDAY - 30 * DAY)
    due = Deadline(percentile=95, margin="10m").last(MONDAY + 12 * HOUR, runs)
    assert due is not None
    assert due.at == MONDAY + 2 * HOUR + timedelta(minutes=10)
    few = past(2.0, 98.0, 74.0, 50.0, 2.0, 2.0, 2.0, first=MONDAY - 7 * DAY)
    assert Deadline(percentile=95).last(MONDAY + 12 * HOUR, few) is None


def test_usual_deadline_may_lie_on_the_next_day() -> None:
    runs = past(*[26.0] * 10, first=MONDAY - 10 * DAY)
    due = Deadline(percentile=95).last(MONDAY + 3 * HOUR, runs)
    assert due is not None
    assert (due.day, due.at) == (date(2026, 3, 1), MONDAY + 2 * HOUR)


def test_too_few_runs_have_no_usual_time() -> None:
    assert Deadline(percentile=95).last(MONDAY, past(1, 1, 1, 1)) is None
    of_mondays = Deadline(percentile=95, days=("MON",))
    assert of_mondays.last(MONDAY, past(*[1.0] * 7)) is None


def test_deadline_is_fixed_or_usual() -> None:
    for wrong in ({}, {"at": "07:30", "percentile": 95}):
        with pytest.raises(ValidationError, match="set either at or percentile"):
            Deadline.model_validate(wrong)


def test_reason_of_a_missed_deadline() -> None:
    due = Deadline(at="07:30", timezone="Asia/Tokyo").last(MONDAY, ())
    assert due is not None
    text = missed(due, "succeeded", "Asia/Tokyo")
    assert text == "no run for 2026-03-02 has succeeded by 2026-03-02 07:30 Asia/Tokyo"


def test_silence_is_counted_from_the_last_success() -> None:
    assert silent(MONDAY, 3600, MONDAY + HOUR - timedelta(seconds=1)) is None
    assert "no success for 1h 00m: the last success was 2026-03-02 00:00 UTC" in str(
        silent(MONDAY, 3600, MONDAY + HOUR)
    )
    assert "no run has ever succeeded" in str(silent(None, 3600, MONDAY))


def test_success_rate() -> None:
    rate = SuccessRate(below=0.9, runs=10)
    assert rate.problem([True] * 9 + [False] + [False] * 5) is None
    assert rate.problem([False] * 9) is None  # too few to judge
    problem = rate.problem([True] * 8 + [False] * 2)
    assert problem == "8 of the last 10 runs succeeded; 90% are wanted"


_TOLD: dict[str, Any] = {"receivers": ["ops"]}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"triggers": ["workflow.not-started"]}, "deadline: workflow.not-started needs it"),
        ({"triggers": ["workflow.no-success"]}, "no_success_for: workflow.no-success needs it"),
        ({"triggers": ["workflow.low-success-rate"]}, "success_rate: workflow.low-success-rate"),
        (
            {"triggers": ["run.failed"], "deadline": {"at": "07:30"}},
            "deadline: only workflow.not-started and workflow.not-finished use it",
        ),
        (
            {"triggers": ["workflow.no-success"], "no_success_for": "1h"},
            "workflows: name those that are watched",
        ),
        (
            {
                "triggers": ["workflow.no-success"],
                "no_success_for": "1h",
                "workflows": ["*"],
                "labels": ["team"],
            },
            "labels: runs have them",
        ),
        ({"triggers": ["worker.gone", "run.failed"]}, "needs a rule of its own"),
        ({"triggers": ["worker.gone"], "workflows": ["x"]}, "has no workflows, tasks, labels"),
    ],
)
def test_rule_says_what_it_watches(spec: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        RuleSpec.model_validate(_TOLD | spec)


def test_rules_that_watch() -> None:
    deadline = {"triggers": ["workflow.not-finished"], "deadline": {"at": "07:30"}}
    assert RuleSpec.model_validate(_TOLD | deadline | {"workflows": ["load-*"]})
    assert RuleSpec.model_validate(_TOLD | {"triggers": ["worker.gone", "cluster.degraded"]})
