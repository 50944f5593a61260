"""A simulation of what happens when a master dies: how long do its instances wait?

Its session ends by its timeout; the others agree on who gets its partitions, each by conditional
writes of one znode, where a write that comes second has to be made again; then the new owners
create their owner nodes, raise their epochs and load what is open.
"""

import heapq
import random
import statistics
from dataclasses import dataclass

from bench.scale.costs import Cluster, Costs

ROUNDS = 3  # requests of each member: join for who revokes, sync, join again for who is given
_TRIES = 9


@dataclass(frozen=True)
class Takeover:
    """Seconds from the death of a master until all that was its own goes on; medians."""

    noticed_s: float
    agreed_s: float
    loaded_s: float

    @property
    def whole_s(self) -> float:
        return self.noticed_s + self.agreed_s + self.loaded_s


def takeover(cluster: Cluster, costs: Costs, open_instances: int) -> Takeover:
    """Return how long it takes with so many open instances in the whole cluster."""
    rng = random.Random(2)
    found = [
        Takeover(
            # The last heartbeat was up to a sixth of the timeout before the death, and the
            # server looks for sessions that have ended once a tick, every two seconds.
            cluster.session_timeout_s * rng.uniform(5 / 6, 1) + rng.uniform(0, 2),
            ROUNDS * agree(cluster.masters - 1, cluster, costs, rng),
            _load(cluster, costs, open_instances),
        )
        for _ in range(_TRIES)
    ]
    return Takeover(
        statistics.median(one.noticed_s for one in found),
        statistics.median(one.agreed_s for one in found),
        statistics.median(one.loaded_s for one in found),
    )


def agree(members: int, cluster: Cluster, costs: Costs, rng: random.Random) -> float:
    """Return the seconds until each of ``members`` has made one write of the znode."""
    read_s = costs.read_ms / cluster.zookeepers / 1e3
    think_s = (costs.answer_ms + costs.join_ms * members) / 1e3
    trip_s, write_s = costs.trip_ms / 1e3, costs.write_ms / 1e3
    version, reader_free, leader_free, left = 0, 0.0, 0.0, members
    # A member asks for the znode, sees a version of it, and writes what follows from that.
    agenda: list[tuple[float, float, str, int]] = [
        (0.0, rng.random(), "asks", 0) for _ in range(members)
    ]
    while True:
        now, order, does, seen = heapq.heappop(agenda)
        if does == "asks":
            reader_free = max(now, reader_free) + read_s
            heapq.heappush(agenda, (reader_free, order, "sees", 0))
            continue
        if does == "sees":
            thought = now + trip_s + think_s * rng.uniform(0.8, 1.2)
            heapq.heappush(agenda, (thought, order, "writes", version))
            continue
        leader_free = max(now, leader_free) + write_s  # refusing is as much work
        if seen != version:
            heapq.heappush(agenda, (leader_free + trip_s, order, "asks", 0))
            continue
        version, left = version + 1, left - 1
        if not left:
            return leader_free + trip_s


def _load(cluster: Cluster, costs: Costs, open_instances: int) -> float:
    partitions = cluster.partitions / cluster.masters
    nodes = partitions * costs.write_ms + costs.trip_ms
    each = open_instances / cluster.masters / (cluster.masters - 1)
    return (nodes + costs.commit_ms + each * costs.load_ms) / 1e3
