"""What a cluster without work asks for by the minute."""

import asyncio
from collections.abc import Mapping

from bench.counts.counting import COMMITS, REQUESTS, STATEMENTS, counting
from bench.counts.loop import AGENT, ALERT_SERVER, MASTER, PYTHON_CALLS, WAKE_UPS
from bench.counts.one_process import one_process
from shoal.master.settings import MasterSettings
from shoal.runtime.settings import ClusterSettings

WORKLOAD = "idle minute"
KINDS = (
    STATEMENTS,
    COMMITS,
    REQUESTS,
    *(f"{kind}: {role}" for kind in (WAKE_UPS, PYTHON_CALLS) for role in (MASTER, AGENT)),
    f"{WAKE_UPS}: {ALERT_SERVER}",
    f"{PYTHON_CALLS}: {ALERT_SERVER}",
)
SETTLE_S, WATCHED_S = 10.0, 30.0


async def idle_minute(cluster: ClusterSettings) -> Mapping[str, float]:
    """Return the counts per minute of a master, a worker and an alert server that have no work.

    They have their default settings. ``cluster`` names an empty data folder and ZooKeeper tree.
    """
    settings = MasterSettings(initial_rebalance_delay_s=0.0)
    with counting(cluster.data) as counts:
        async with one_process(cluster, settings, alerts=True):
            await asyncio.sleep(SETTLE_S)
            before = counts.now()
            await asyncio.sleep(WATCHED_S)
            after = counts.now()
    return {kind: (after[kind] - before[kind]) * 60 / WATCHED_S for kind in after}
