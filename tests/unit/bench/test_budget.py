"""The guard of the counted costs reports costs that have doubled, and names them."""

import pytest

from bench.counts.budget import over

KNOWN = {"WIDE": {"master": 2.0, "api": 0.0}}


@pytest.mark.parametrize("cost", [0.5, 2.0, 2.9])
def test_a_little_more_is_let_pass(cost: float) -> None:
    assert not over(KNOWN, {"WIDE": {"master": cost, "api": 0.1}})


def test_twice_as_much_is_noticed_and_named() -> None:
    (said,) = over(KNOWN, {"WIDE": {"master": 4.0, "api": 0.0}})
    assert said.startswith("WIDE: 4.00 master per task, 2.00 in")


def test_what_cost_nothing_may_not_cost_something() -> None:
    assert over(KNOWN, {"WIDE": {"api": 0.2}})
