"""Quiet hours, who is on duty, pauses between tries; who is told, and which rule is about what."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.alerts.occurrences import Occurrence, Trigger
from shoal.core.alerts.receivers import ChannelSpec, ReceiverSpec
from shoal.core.alerts.rules import RuleSpec, mismatch
from shoal.core.alerts.times import MOST_TRIES, QuietHours, Rotation, pause_s, quiet_until

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
BERLIN = "Europe/Berlin"


def quiet(since: str, until: str, **fields: Any) -> QuietHours:
    return QuietHours.model_validate({"since": since, "until": until, **fields})


def test_quiet_hours_of_a_day() -> None:
    lunch = quiet("12:00", "13:00")
    assert lunch.end(MONDAY + 11.99 * HOUR) is None
    assert lunch.end(MONDAY + 12 * HOUR) == MONDAY + 13 * HOUR
    assert lunch.end(MONDAY + 13 * HOUR) is None


def test_quiet_hours_reach_over_midnight() -> None:
    night = quiet("22:00", "06:00")
    assert night.end(MONDAY + 23 * HOUR) == MONDAY + DAY + 6 * HOUR
    assert night.end(MONDAY + 5 * HOUR) == MONDAY + 6 * HOUR
    assert night.end(MONDAY + 7 * HOUR) is None
    assert quiet("00:00", "00:00").end(MONDAY) == MONDAY + DAY  # the whole day


def test_days_are_those_on_which_quiet_hours_begin() -> None:
    weekend = quiet("22:00", "06:00", days=["SUN"])
    assert weekend.end(MONDAY + 5 * HOUR) == MONDAY + 6 * HOUR
    assert weekend.end(MONDAY + 23 * HOUR) is None


def test_quiet_hours_are_by_the_clock_of_their_zone() -> None:
    night = quiet("22:00", "06:00", timezone=BERLIN)
    change = datetime(2026, 3, 28, 21, tzinfo=UTC)  # 22:00, and the night is an hour shorter
    assert night.end(change) == datetime(2026, 3, 29, 4, tzinfo=UTC)
    assert night.end(change - timedelta(seconds=1)) is None


def test_quiet_hours_that_follow_one_another() -> None:
    both = [quiet("22:00", "06:00"), quiet("06:00", "08:00"), quiet("20:00", "23:00")]
    assert quiet_until(both, MONDAY + 21 * HOUR) == MONDAY + DAY + 8 * HOUR
    assert quiet_until(both, MONDAY + 9 * HOUR) is None
    assert quiet_until([], MONDAY) is None
    always = [quiet("00:00", "00:00")]
    assert quiet_until(always, MONDAY) is not None  # and it ends


@pytest.mark.parametrize("text", ["25:00", "7:30", "07:30:00", "", "night", 7])
def test_times_of_day_are_hours_and_minutes(text: Any) -> None:
    with pytest.raises(ValidationError, match="not a time of day such as 22:00"):
        QuietHours.model_validate({"since": text, "until": "06:00"})


def test_duty_goes_round_by_weeks() -> None:
    rotation = Rotation(start=date(2026, 3, 2), at="09:00", timezone=BERLIN)
    nine = MONDAY + 8 * HOUR
    on_duty = [rotation.on_duty(3, nine + week * 7 * DAY) for week in range(5)]
    # In the fifth week clocks have changed: nine o'clock is an hour earlier by UTC.
    assert on_duty == [0, 1, 2, 0, 1]
    assert rotation.on_duty(3, nine + 7 * DAY - timedelta(seconds=1)) == 0
    change = datetime(2026, 3, 30, 7, tzinfo=UTC)
    assert [rotation.on_duty(3, change), rotation.on_duty(3, change - HOUR / 60)] == [1, 0]
    assert rotation.on_duty(3, nine - 100 * DAY) == 0
    two = Rotation(start=date(2026, 3, 2), weeks=2)
    weeks = [MONDAY + DAY + week * 7 * DAY for week in range(6)]
    assert [two.on_duty(2, one) for one in weeks] == [0, 0, 1, 1, 0, 0]


def test_pauses_grow_and_end() -> None:
    pauses = [pause_s(tries) for tries in range(1, MOST_TRIES + 1)]
    assert pauses[:3] == [5.0, 10.0, 20.0]
    assert pauses[-1] is None
    known = [one for one in pauses if one is not None]
    assert known == sorted(known)
    assert max(known) <= 3600
    assert 2 * 3600 < sum(known) < 6 * 3600


def test_receivers_are_told_each_place_once() -> None:
    mail = {"channel": "mail", "to": ["a@example.org"]}
    members = [{"targets": [mail, {"channel": "hook"}]}, {"targets": [mail]}]
    everybody = ReceiverSpec.model_validate({"members": members})
    assert [one.channel for one in everybody.targets(MONDAY)] == ["mail", "hook"]
    turns = ReceiverSpec.model_validate({"members": members, "rotation": {"start": "2026-03-02"}})
    assert [one.channel for one in turns.targets(MONDAY + 7.5 * DAY)] == ["mail"]
    assert turns.channels == {"mail", "hook"}


@pytest.mark.parametrize("address", ["a@b\r\nRCPT TO:<x@y>", "a\x00b", "", "x" * 501])
def test_addresses_are_one_line(address: str) -> None:
    target = {"channel": "mail", "to": [address]}
    with pytest.raises(ValidationError):
        ReceiverSpec.model_validate({"members": [{"targets": [target]}]})


@pytest.mark.parametrize(
    "spec",
    [
        {"members": [{"targets": [{"channel": "mail"}] * 6}]},
        {"members": [{"targets": [{"channel": "mail"}]}] * 51},
    ],
)
def test_a_receiver_has_so_many_places_at_most(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="at most"):
        ReceiverSpec.model_validate(spec)
    with pytest.raises(ValidationError, match="at most 20"):
        rule(receivers=[f"r{number}" for number in range(21)])


def test_options_of_channels_hold_names_of_secrets() -> None:
    with pytest.raises(ValidationError, match="must be the name of a secret"):
        ChannelSpec.model_validate({"kind": "x", "options": {"password_secret": 17}})


def test_escalation_goes_on_in_order() -> None:
    steps = [{"after": "30m", "receivers": ["b"]}, {"after": "15m", "receivers": ["c"]}]
    with pytest.raises(ValidationError, match="each step must be later"):
        rule(escalation=steps)
    assert rule(escalation=steps[::-1]).named == {"a", "b", "c"}


def rule(**fields: Any) -> RuleSpec:
    return RuleSpec.model_validate({"triggers": ["task.failed"], "receivers": ["a"], **fields})


FAILED = Occurrence(1, MONDAY, Trigger.TASK_FAILED, "p", "load-a", "task/load-a/t", 7, "t", 70, 1)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, None),
        ({"workflows": ["load-*"], "tasks": ["t", "u"]}, None),
        ({"labels": ["team", "env=prod"]}, None),
        ({"enabled": False}, "the rule is disabled"),
        ({"triggers": ["run.failed"]}, "the rule is not about task.failed"),
        ({"workflows": ["load"]}, "the rule is not about workflow load-a"),
        ({"tasks": ["u*"]}, "the rule is not about task t"),
        ({"labels": ["env=test"]}, "the run has no label env=test"),
        ({"labels": ["owner"]}, "the run has no label owner"),
    ],
)
def test_rules_say_what_they_are_not_about(fields: dict[str, Any], says: str | None) -> None:
    assert mismatch("r", rule(**fields), FAILED, {"team": "data", "env": "prod"}) == says


def test_labels_that_are_not_known_yet_may_fit() -> None:
    assert mismatch("r", rule(labels=["env=test"]), FAILED, None) is None
