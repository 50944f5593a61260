"""A worker's times as the cluster's."""

from datetime import UTC, datetime, timedelta

import pytest

from shoal.master.dispatch.rpc import AGREE_S, WorkerTime

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)


def ago(seconds: float, by: timedelta = timedelta()) -> float:
    """Return the timestamp of so many seconds ago, on a clock that is ahead ``by`` so much."""
    return (NOW - timedelta(seconds=seconds) + by).timestamp()


@pytest.mark.parametrize("off", [TEN_MINUTES, -TEN_MINUTES, timedelta(days=-400)])
def test_wrong_clock_of_a_worker_makes_no_difference(off: timedelta) -> None:
    time = WorkerTime(NOW, ago(0, off))
    assert time.instant(ago(30, off)) == NOW - timedelta(seconds=30)


def test_time_that_a_call_takes_is_no_difference_of_clocks() -> None:
    time = WorkerTime(NOW, ago(AGREE_S - 0.1))
    assert time.instant(ago(30)) == NOW - timedelta(seconds=30)


def test_nothing_has_happened_after_now() -> None:
    assert WorkerTime(NOW, ago(0)).instant(ago(-5)) == NOW
    assert WorkerTime(NOW, 0.0).instant(ago(0, TEN_MINUTES)) == NOW


def test_worker_that_does_not_say_when_it_sent_is_believed() -> None:
    assert WorkerTime(NOW, 0.0).instant(ago(30)) == NOW - timedelta(seconds=30)


@pytest.mark.parametrize("timestamp", [float("nan"), float("inf"), -1e300, 1e300])
def test_time_that_cannot_be_is_now(timestamp: float) -> None:
    assert WorkerTime(NOW, ago(0)).instant(timestamp) == NOW
    assert WorkerTime(NOW, timestamp).instant(ago(30)) <= NOW
