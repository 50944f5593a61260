"""Goals are judged by the limit of the machine, so that a slow machine hides no gap."""

import pytest

from bench.engine.goals import GOALS, Goal, table
from bench.support.spawn_limit import SpawnLimit

HALF = SpawnLimit(one=877, all=1_693, starters=2, cpu_ms=1.1, count_ms=1.2, clock_ms=2.9)
RATE = Goal("WIDE 200", "tasks_per_s", 1_000, "≥ 1,000 tasks/s", at_least=True)
DELAY = Goal("CHAIN 20", "median_ms", 5, "median ≤ 5 ms")


@pytest.mark.parametrize(
    ("goal", "value", "said"),
    [
        (RATE, 1_000, "met"),
        (RATE, 250, "4.0 x short"),
        (DELAY, 5, "met"),
        (DELAY, 15, "3.0 x short"),
    ],
)
def test_a_gap_tells_how_many_times_better(goal: Goal, value: float, said: str) -> None:
    assert goal.gap(value) == said


def test_a_machine_that_is_half_as_quick_is_judged_by_its_own_limit() -> None:
    assert RATE.scaled(500, HALF) == pytest.approx(1_000)
    assert DELAY.scaled(10, HALF) == pytest.approx(5, rel=0.01)


FOUND = {(goal.workload, "sqlite"): {goal.figure: goal.bound} for goal in GOALS}


def test_a_busy_machine_says_nothing_about_another_one() -> None:
    # Half as quick as the goals' machine: what just meets a goal here is beyond it there.
    assert "1,600" in table(HALF, FOUND, quiet=True)
    assert "1,600" not in table(HALF, FOUND, quiet=False)
