"""A plan can be repeated, and no kind of fault is left out of it.

A fault that is never drawn, or excuses more time than it took, hides what it should show.
"""

import asyncio
import random
from collections import Counter
from typing import cast

import pytest

from shoal.runtime import failpoints
from tests.chaos import plan
from tests.chaos.cluster.cluster import Cluster
from tests.chaos.faults.catalogue import FAULTS, POINTS, chosen
from tests.chaos.faults.fault import Fault
from tests.chaos.observer import View
from tests.chaos.plan import Outcome, draw
from tests.chaos.records import now_s


def described(seed: int, count: int) -> list[tuple[float, float, list[tuple[str, object]]]]:
    return [
        (e.pause_s, e.apart_s, [(f.name, f.dice.getstate()) for f in e.faults])
        for e in draw(seed, count, FAULTS)
    ]


def test_same_seed_draws_the_same_plan() -> None:
    assert described(7, 90) == described(7, 90)
    assert described(7, 90) != described(8, 90)


def test_every_kind_is_drawn_as_often_as_the_others() -> None:
    simple = chosen("kill-,pause-,cut-")
    drawn = Counter(f.name for e in draw(3, 5 * len(simple), simple) for f in e.faults)
    assert set(drawn.values()) == {5}
    assert set(drawn) == set(simple)


def test_a_plan_has_as_many_faults_as_were_asked_for() -> None:
    for count in (0, 1, 17, 100):
        assert sum(len(e.faults) for e in draw(1, count, FAULTS)) == count


def test_every_failpoint_can_be_asked_for() -> None:
    names = {*failpoints.MASTER, *failpoints.WORKER}
    assert set(POINTS) == {f"failpoint:{name}" for name in names}
    for name, maker in POINTS.items():
        [episode] = draw(1, 1, {name: maker})
        assert episode.faults[0].name == name.replace(":", "-")


def test_names_and_their_beginnings_choose_faults() -> None:
    assert list(chosen("kill-master")) == ["kill-master"]
    assert set(chosen("kill-z")) == {"kill-zookeeper-leader", "kill-zookeeper-follower"}
    assert chosen("") == FAULTS
    with pytest.raises(ValueError, match="no fault is called 'kil-master'"):
        chosen("kill-api,kil-master")


async def test_fault_counts_as_lifted_when_its_healing_begins() -> None:
    """A quorum is back before the servers that make it have all answered."""
    outcome = Outcome()
    fault = SlowToHeal(random.Random(1))
    before = now_s()
    one = await plan._one(cast("Cluster", None), fault, cast("View", None), 0.0, outcome)
    assert one is not None
    assert before <= one.lifted_s <= fault.healing_s < one.healed_s


class SlowToHeal(Fault):
    name = "slow-to-heal"
    healing_s = 0.0

    async def begin(self, cluster: Cluster) -> None:
        self.target = "nothing"

    async def heal(self, cluster: Cluster) -> None:
        self.healing_s = now_s()
        await asyncio.sleep(0.01)

    def bit(self, after: View) -> tuple[bool, str]:
        return True, ""
