"""The scale model, where the answer is known without it."""

import random

import pytest

from bench.scale.costs import Cluster, Costs
from bench.scale.simulation import LEADER, MASTER, simulate
from bench.scale.takeover import agree, takeover

COSTS = Costs(
    master=2.0, agent=1.0, launcher=3.0, database=0.5, zookeeper=1.0, api=0.0, requests=1.0
)


def test_few_masters_are_the_limit_and_more_of_them_help() -> None:
    few, more = simulate(Cluster(1, 100), COSTS), simulate(Cluster(4, 100), COSTS)
    assert few.bottleneck == more.bottleneck == MASTER
    assert few.tasks_per_s == pytest.approx(500, rel=0.05)
    assert more.tasks_per_s == pytest.approx(2_000, rel=0.1)


def test_two_processors_share_all_the_work() -> None:
    found = simulate(Cluster(1, 1, together=2), COSTS)
    assert found.tasks_per_s == pytest.approx(2 / 7.5e-3, rel=0.05)


def test_one_task_at_a_time_takes_the_sum_of_all_steps() -> None:
    found = simulate(Cluster(1, 1, together=2), COSTS, slots=1)
    waits_ms = 2 * COSTS.commit_ms + 5 * COSTS.trip_ms
    assert 1e3 / found.tasks_per_s == pytest.approx(7.5 + waits_ms, rel=0.05)


def test_bookkeeping_for_too_many_workers_leaves_no_room_for_tasks() -> None:
    found = simulate(Cluster(3, 10_000), COSTS)
    assert found.tasks_per_s == 0
    assert found.busy[LEADER] > 1


def test_agreeing_takes_longer_the_more_masters_there_are() -> None:
    rng = random.Random(1)
    spent = [agree(n, Cluster(n + 1, 10), COSTS, rng) for n in (2, 20, 100)]
    assert spent == sorted(spent)


def test_a_takeover_is_mostly_waiting_for_the_session_to_end() -> None:
    found = takeover(Cluster(3, 10, session_timeout_s=6.0), COSTS, 100)
    assert 5.0 <= found.noticed_s <= 8.0
    assert found.whole_s - found.noticed_s < 1.0
