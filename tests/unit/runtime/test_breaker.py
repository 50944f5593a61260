"""A breaker opens after failures in a row, allows single probes, closes on a success."""

import pytest

from shoal.runtime.breaker import Breaker, BreakerState

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


def _open_breaker(at_s: float = 0.0) -> Breaker:
    breaker = Breaker(retry_s=2.0)
    breaker.failed(at_s)
    return breaker


def test_closed_breaker_allows_every_call() -> None:
    breaker = Breaker(failures=3)
    assert all(breaker.allows(0.0) for _ in range(10))
    assert breaker.state is CLOSED


def test_it_opens_after_failures_in_a_row() -> None:
    breaker = Breaker(failures=3)
    breaker.failed(0.0)
    breaker.failed(0.0)
    breaker.succeeded()
    breaker.failed(1.0)
    breaker.failed(1.0)
    assert breaker.state is CLOSED
    breaker.failed(1.0)
    assert breaker.state is OPEN
    assert not breaker.is_closed
    assert not breaker.allows(1.0)


def test_one_probe_is_allowed_when_it_is_time() -> None:
    breaker = _open_breaker()
    assert not breaker.allows(1.9)
    assert breaker.allows(2.0)
    assert breaker.state is HALF_OPEN
    assert not breaker.allows(3.9)


def test_success_of_the_probe_closes_it() -> None:
    breaker = _open_breaker()
    assert breaker.allows(2.0)
    breaker.succeeded()
    assert breaker.state is CLOSED
    assert breaker.allows(2.0)


def test_failure_of_the_probe_opens_it_again() -> None:
    breaker = _open_breaker()
    assert breaker.allows(2.0)
    breaker.failed(5.0)
    assert breaker.state is OPEN
    assert not breaker.allows(6.9)
    assert breaker.allows(7.0)


def test_late_failures_of_earlier_calls_do_not_put_the_probe_off() -> None:
    breaker = _open_breaker()
    breaker.failed(1.9)
    assert breaker.allows(2.0)


def test_probe_without_an_outcome_is_followed_by_another() -> None:
    breaker = _open_breaker()
    assert breaker.allows(2.0)
    assert breaker.allows(4.0)


def test_answer_of_a_call_from_before_closes_it() -> None:
    breaker = _open_breaker()
    breaker.succeeded()
    assert breaker.allows(0.0)


@pytest.mark.parametrize(("failures", "retry_s"), [(0, 1.0), (1, 0.0), (1, -1.0)])
def test_useless_limits_are_refused(failures: int, retry_s: float) -> None:
    with pytest.raises(ValueError, match="breaker"):
        Breaker(failures=failures, retry_s=retry_s)
