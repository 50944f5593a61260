"""What a task costs, counted: no clock is read, so neither the processor's make nor other work on
the machine changes much of it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from bench.counts import budget, idle
from bench.counts.__main__ import KINDS, SECTION, SESSION_S, measure
from bench.counts.budget import Costs, chosen
from bench.counts.counting import (
    CALL_BYTES,
    CALLS,
    COMMITS,
    LAUNCHER_WAKE_UPS,
    PROCESSES,
    STATEMENTS,
    VALUE_BYTES,
)
from bench.counts.loop import AGENT, MASTER, PYTHON_CALLS, WAKE_UPS
from shoal.runtime.settings import ClusterSettings

LONELY = "CHAIN 20"  # one task at a time, so the counts are nearly the same every time
TOGETHER = ("WIDE 200", "MANY 40 x 5")
# What tasks need whether or not they share requests. How many share one depends on how they meet.
OWN = (
    PROCESSES,
    VALUE_BYTES,
    CALL_BYTES,
    LAUNCHER_WAKE_UPS,
    f"{PYTHON_CALLS}: {MASTER}",
    f"{PYTHON_CALLS}: {AGENT}",
)
# Of which tasks that run together need fewer.
SHARED = (STATEMENTS, COMMITS, CALLS, WAKE_UPS, PYTHON_CALLS)
ROUNDS = 4  # at most, of which the least counts: timers and unlucky meetings only add


@pytest.fixture
async def rounds(
    tmp_path: Path, zk_chroot: str
) -> AsyncGenerator[AsyncGenerator[Costs, None], None]:
    cluster = ClusterSettings(data=tmp_path, zookeeper=zk_chroot, session_timeout_s=SESSION_S)
    async with aclosing(measure(cluster)) as found:
        yield found


async def test_a_task_costs_no_more_than_it_did(rounds: AsyncGenerator[Costs, None]) -> None:
    known = budget.read(SECTION)
    seen: list[Costs] = []
    while len(seen) < ROUNDS:
        seen.append(await anext(rounds))
        least = chosen(seen, min)
        judged = {LONELY: {kind: least[LONELY].get(kind, 0.0) for kind in KINDS}}
        judged |= {w: {kind: least[w].get(kind, 0.0) for kind in OWN} for w in TOGETHER}
        too_much = budget.over(known, judged, budget.FACTOR_OF_COUNTS)
        if not (too_much := too_much + sharing_too_little(least)):
            break
    assert not too_much
    assert all(value > 0 for costs in judged.values() for value in costs.values())
    assert all(known[workload].keys() >= judged[workload].keys() for workload in judged)


def sharing_too_little(found: Costs) -> list[str]:
    return [
        f"{workload}: tasks that run together share no {kind}"
        for workload in TOGETHER
        for kind in SHARED
        if found[workload][kind] >= 0.85 * found[LONELY][kind]
    ]


async def test_an_idle_cluster_costs_no_more_than_it_did(tmp_path: Path, zk_chroot: str) -> None:
    costs = await idle.idle_minute(ClusterSettings(data=tmp_path, zookeeper=zk_chroot))
    judged = {idle.WORKLOAD: {kind: costs.get(kind, 0.0) for kind in idle.KINDS}}
    known = budget.read(SECTION)
    assert not budget.over(known, judged, budget.FACTOR_OF_COUNTS)
    assert known[idle.WORKLOAD].keys() == judged[idle.WORKLOAD].keys()
