"""The scale model gives the known answer in the two cases that can be calculated."""

import pytest

from bench.scale.costs import Cluster, Costs
from bench.scale.simulation import MASTER, simulate

COSTS = Costs(
    master=2.0, agent=1.0, launcher=3.0, database=0.5, zookeeper=1.0, api=0.0, requests=1.0
)


def test_few_masters_are_the_limit_and_more_of_them_help() -> None:
    few, more = simulate(Cluster(1, 100), COSTS), simulate(Cluster(4, 100), COSTS)
    assert few.bottleneck == more.bottleneck == MASTER
    assert few.tasks_per_s == pytest.approx(500, rel=0.05)
    assert more.tasks_per_s == pytest.approx(2_000, rel=0.1)


def test_one_task_at_a_time_takes_the_sum_of_all_steps() -> None:
    found = simulate(Cluster(1, 1, together=2), COSTS, slots=1)
    waits_ms = 2 * COSTS.commit_ms + 5 * COSTS.trip_ms
    assert 1e3 / found.tasks_per_s == pytest.approx(7.5 + waits_ms, rel=0.05)
