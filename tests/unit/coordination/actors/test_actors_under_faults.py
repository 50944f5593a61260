"""Mixtures of actors over shared sessions, in virtual time, with every kind of fault.

``tests.support.simulation`` has the world: elections, owners, shares, jobs and groups of up to four
processes live on sessions that they share, while connections break, answers are lost, sessions
expire, processes are paused and killed, nodes are deleted and overwritten, servers stop and lose
their data, and actors come, go and are cancelled at any moment. In each history a seat has one
holder at a time and epochs grow. Then the faults end: everything finds its one owner, nothing is
written any longer, and all actors can leave, which leaves no node and no task behind.

``SHOAL_TESTS_SEED`` is the first seed; ``SHOAL_TESTS_LONG=1`` tries many more.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.length import share
from tests.support.simulation.actors import KINDS

ROOT = Path(__file__).parents[4]
FIRST = os.environ.get("SHOAL_TESTS_SEED", "0")
SEEDS = share(200, 60)  # of each kind; some 25 to 45 ms of processor time each


@pytest.mark.parametrize("kinds", sorted(KINDS))
def test_actors_that_share_sessions_survive_every_fault(kinds: str) -> None:
    # A process of its own: the order of sets of texts, too, is to be the same in each run.
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.simulation", kinds, FIRST, str(SEEDS)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    # Every kind of fault has happened, or this shows little.
    assert len(json.loads(run.stdout)["faults"]) == 15
