"""Settings of a master that have to be read, and to fit each other."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from shoal.master.settings import MasterSettings

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_purges_come_at_any_time_by_default() -> None:
    settings = MasterSettings()
    assert settings.purge_trigger is None
    assert settings.hours.contains(NOON)


def test_purge_hours_are_read_in_their_time_zone() -> None:
    settings = MasterSettings(purge_hours="14:00-15:00", purge_timezone="Europe/Berlin")
    assert settings.purge_trigger is None
    assert settings.hours.contains(NOON)
    assert not settings.hours.contains(NOON.replace(hour=14))


def test_purge_cron_is_read_in_its_time_zone() -> None:
    trigger = MasterSettings(
        purge_cron="0 30 2 * * ?", purge_timezone="Europe/Berlin"
    ).purge_trigger
    assert trigger is not None
    assert trigger.get_next_fire_time(None, NOON) == datetime(2026, 7, 2, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"purge_cron": "0 0 25 * * ?"}, "hour '25'"),
        ({"purge_cron": "0 0 2 * * ?", "purge_timezone": "Europe/Nowhere"}, "Nowhere"),
        ({"purge_hours": "1-5"}, "purge_hours"),
        ({"purge_cron": "0 0 2 * * ?", "purge_hours": "01:00-05:00"}, "both set"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, str], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        MasterSettings.model_validate(given)


@pytest.mark.parametrize(
    ("given", "days"),
    [
        ({"purge_interval_s": 900}, 900 / 86_400),
        ({"purge_hours": "01:00-05:00"}, 1),
        ({"purge_cron": "0 0 3 ? * SUN"}, 7),
        ({"purge_cron": "0 */5 1 1 * ?"}, 30),
    ],
)
def test_the_longest_time_between_two_purges_follows_from_the_settings(
    given: dict[str, str], days: float
) -> None:
    assert days <= MasterSettings.model_validate(given).purge_period_s / 86_400 < days + 1.1
