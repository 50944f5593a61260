"""Mixtures of actors over shared sessions, in virtual time, with every kind of fault.

``tests.support.simulation`` has the world: elections, owners, shares, jobs and groups of up to four
processes live on sessions that they share, while connections break, answers are lost, sessions
expire, processes are paused and killed, nodes are deleted and overwritten, servers stop and lose
their data, and actors come, go and are cancelled at any moment. In each history a seat has one
holder at a time and epochs grow. Then the faults end: everything finds its one owner, nothing is
written any more, and all actors can leave, which leaves no node and no task behind.

``SHOAL_TESTS_SEED`` is the first seed; ``SHOAL_TESTS_LONG=1`` tries many more.
"""

import os
from collections import Counter

import pytest

from tests.support.length import share
from tests.support.simulation.actors import KINDS
from tests.support.simulation.history import History
from tests.support.simulation.zookeeper import simulated_sessions

FIRST = int(os.environ.get("SHOAL_TESTS_SEED", "0"))
SEEDS = share(600, 60)  # of each kind; some 15 to 40 ms of processor time each


@pytest.mark.parametrize("kinds", sorted(KINDS))
def test_actors_that_share_sessions_survive_every_fault(kinds: str) -> None:
    faults: Counter[str] = Counter()
    with simulated_sessions():
        for seed in range(FIRST, FIRST + SEEDS):
            faults += History(seed, kinds).run().faults
    # Every kind of fault has happened, or this shows little.
    assert len(faults) == 15
