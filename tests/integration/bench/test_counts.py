"""What a task costs, counted: no clock is read, so a busy machine changes little of it."""

from pathlib import Path

import pytest

from bench import budget
from bench.budget import Costs
from bench.counting import CALLS, COMMITS, PROCESSES, STATEMENTS
from bench.counts_cli import KINDS, SECTION, measure
from shoal.core.settings import ClusterSettings
from tests.waiting import STEADY_SESSION_S

LONELY = "CHAIN 20"  # one task at a time, so the counts are nearly the same every time
TOGETHER = ("WIDE 200", "MANY 40 x 5")


@pytest.fixture
async def counts(tmp_path: Path, zk_chroot: str) -> Costs:
    cluster = ClusterSettings(
        data=tmp_path, zookeeper=zk_chroot, session_timeout_s=STEADY_SESSION_S
    )
    return await measure(cluster)


async def test_a_task_costs_no_more_requests_than_it_did(counts: Costs) -> None:
    found = {LONELY: counts[LONELY]}
    for workload in TOGETHER:
        found[workload] = {PROCESSES: counts[workload][PROCESSES]}
    assert set(KINDS) <= counts[LONELY].keys()
    assert not budget.over(budget.read(SECTION), found)
    for workload in TOGETHER:
        for kind in (STATEMENTS, COMMITS, CALLS):
            shared, alone = counts[workload][kind], counts[LONELY][kind]
            assert shared < 0.85 * alone, f"tasks that run together share no {kind}: {workload}"
