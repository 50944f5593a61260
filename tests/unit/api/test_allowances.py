"""How often a caller may ask."""

import pytest

from shoal.api.web.allowances import Allowance
from shoal.api.web.errors import TooManyRequests


class Clock:
    """Seconds that a test sets."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def taken(allowance: Allowance, caller: str, count: int) -> int:
    """Return how many of ``count`` requests were accepted."""
    accepted = 0
    for _ in range(count):
        try:
            allowance.take(caller)
        except TooManyRequests:
            continue
        accepted += 1
    return accepted


def test_caller_may_ask_so_often_at_once_and_then_at_the_rate() -> None:
    clock = Clock()
    allowance = Allowance("commands", per_minute=60, at_once=5, clock_s=clock)
    assert taken(allowance, "ada", 20) == 5
    clock.now_s += 3
    assert taken(allowance, "ada", 20) == 3
    clock.now_s += 3_600
    assert taken(allowance, "ada", 20) == 5


def test_callers_do_not_use_up_each_others_allowance() -> None:
    allowance = Allowance("commands", per_minute=60, at_once=5, clock_s=Clock())
    assert taken(allowance, "ada", 100) == 5
    assert taken(allowance, "bob", 3) == 3


def test_refusal_says_who_how_many_and_when() -> None:
    allowance = Allowance("commands", per_minute=6, at_once=1, clock_s=Clock())
    allowance.take("ada")
    with pytest.raises(TooManyRequests, match="commands by ada: at most 6 a minute") as refused:
        allowance.take("ada")
    assert refused.value.headers["Retry-After"] == "10"
