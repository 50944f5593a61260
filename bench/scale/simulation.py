"""A discrete-event simulation of a cluster that has more to do than it can.

Every slot of every worker runs one task after another. A task is a journey through stations, each
with so many servers and one queue, first come, first served; between two stations lies a delay.
"""

import heapq
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.scale.costs import Cluster, Costs

HEARTBEATS = 6  # of a session in its timeout
_ENOUGH = 2_000
MASTER, WORKER, DATABASE, LEADER, SERVERS = (
    "a master",
    "a worker",
    "the database",
    "ZooKeeper's leader",
    "ZooKeeper's servers",
)


@dataclass
class Station:
    """``servers`` that serve one queue; ``spare`` is the part of their time that tasks may have."""

    kind: str
    servers: int
    spare: float = 1.0
    busy_s: float = 0.0
    _free_at: list[float] = field(default_factory=list)

    def serve(self, now: float, seconds: float) -> float:
        """Return when a job that comes now is done. To be called in the order of time."""
        free_at = self._free_at
        is_free = len(free_at) < self.servers
        began = now if is_free else max(now, heapq.heappop(free_at))
        self.busy_s += seconds
        heapq.heappush(free_at, began + seconds / self.spare)
        return began + seconds / self.spare


@dataclass(frozen=True)
class Prediction:
    """What the simulated cluster has done."""

    tasks_per_s: float
    busy: dict[str, float]  # by kind of station: the part of its time, bookkeeping included
    bookkeeping: dict[str, float]  # the part that goes away without any task

    @property
    def bottleneck(self) -> str:
        """Return the station that is busiest."""
        return max(self.busy, key=lambda kind: self.busy[kind])


def bookkeeping(cluster: Cluster, costs: Costs) -> dict[str, float]:
    """Return the part of each station's time that sessions and announcements take."""
    sessions = cluster.masters + cluster.workers
    writes = cluster.workers / cluster.load_s
    syncs = sessions * HEARTBEATS / cluster.session_timeout_s
    reads = cluster.masters * cluster.workers / cluster.reread_s
    # Every claimer reads the list of all claimers of its group.
    claimers = cluster.workers / cluster.groups
    lists = cluster.workers / cluster.reread_s * (costs.read_ms + claimers * costs.name_ms)
    return {
        MASTER: cluster.workers / cluster.reread_s * costs.answer_ms / 1e3,
        LEADER: (writes * costs.write_ms + syncs * costs.read_ms) / 1e3,
        SERVERS: (reads * costs.read_ms + lists) / cluster.zookeepers / 1e3,
    }


def simulate(cluster: Cluster, costs: Costs, *, slots: int | None = None) -> Prediction:
    """Run tasks until the rate is steady. ``slots`` None: all of the cluster's."""
    rng = random.Random(1)
    taken = {} if cluster.together else bookkeeping(cluster, costs)
    if any(part >= 1 for part in taken.values()):
        return Prediction(0.0, taken, taken)
    stations = _stations(cluster, taken)
    if slots is None:  # more of them only make the queues longer
        slots = min(cluster.workers * cluster.slots, max(cluster.workers, _ENOUGH))
    tasks = 4 * max(slots, _ENOUGH)

    def journey(slot: int) -> list[Leg]:
        return _journey(stations, costs, cluster.masters, slot % cluster.workers, rng)

    journeys = [journey(slot) for slot in range(slots)]
    # What comes next: (when, slot, leg of its journey).
    agenda = [(rng.random() * 0.01, slot, 0) for slot in range(slots)]
    heapq.heapify(agenda)
    done, half_at = 0, 0.0
    now = 0.0
    while done < tasks:
        now, slot, leg = heapq.heappop(agenda)
        if leg == len(journeys[slot]):
            done += 1
            if done == tasks // 2:
                half_at = now
                for station in stations.values():
                    station.busy_s = 0.0
            journeys[slot], leg = journey(slot), 0
        station, seconds, delay = journeys[slot][leg]
        over = station.serve(now, seconds * rng.uniform(0.5, 1.5)) + delay
        heapq.heappush(agenda, (over, slot, leg + 1))
    spent_s = now - half_at
    busy = _busy(stations.values(), spent_s, taken)
    return Prediction((tasks - tasks // 2) / spent_s, busy, taken)


Stations = dict[tuple[str, int], Station]
Leg = tuple[Station, float, float]  # where, seconds of work, seconds of delay behind it


def _stations(cluster: Cluster, taken: dict[str, float]) -> Stations:
    if cluster.together:
        machine = Station("the machine", cluster.together)
        places = [(MASTER, n) for n in range(cluster.masters)]
        places += [(WORKER, n) for n in range(cluster.workers)]
        return dict.fromkeys((*places, (DATABASE, 0), (LEADER, 0), (SERVERS, 0)), machine)
    spare = {kind: 1 - part for kind, part in taken.items()}
    stations = {(MASTER, n): Station(MASTER, 1, spare[MASTER]) for n in range(cluster.masters)} | {
        (WORKER, n): Station(WORKER, cluster.worker_processors) for n in range(cluster.workers)
    }
    stations[DATABASE, 0] = Station(DATABASE, cluster.database_processors)
    stations[LEADER, 0] = Station(LEADER, 1, spare[LEADER])
    stations[SERVERS, 0] = Station(SERVERS, cluster.zookeepers, spare[SERVERS])
    return stations


def _journey(
    stations: Stations, costs: Costs, masters: int, worker: int, rng: random.Random
) -> list[Leg]:
    """Return the way of one task, whose instance belongs to any of the masters."""
    master = stations[MASTER, rng.randrange(masters)]
    at_work, database = stations[WORKER, worker], stations[DATABASE, 0]
    leader, servers = stations[LEADER, 0], stations[SERVERS, 0]
    trip, commit = costs.trip_ms / 1e3, costs.commit_ms / 1e3
    together = leader is at_work
    # Half of the requests are writes: claim, put and release; batched as they were counted.
    asked = costs.zookeeper if together else costs.requests * costs.write_ms / 2
    read = 0.0 if together else costs.requests * costs.read_ms / 2
    half = [
        (master, costs.master / 2e3, 0.0),
        (database, costs.database / 2e3, commit + trip),
    ]
    return [
        (servers, read / 1e3, 0.0),
        (leader, asked / 2e3, trip),
        (at_work, costs.agent / 2e3, trip / 2),
        *half,
        (at_work, costs.launcher / 1e3, 0.0),
        (at_work, costs.agent / 2e3, trip / 2),
        *half,
        (leader, asked / 2e3, trip),
    ]


def _busy(
    stations: Iterable[Station], spent_s: float, taken: Mapping[str, float]
) -> dict[str, float]:
    """Return the part of its time that the average station of each kind has been at work."""
    work: dict[str, float] = defaultdict(float)
    servers: dict[str, int] = defaultdict(int)
    for station in {id(station): station for station in stations}.values():
        work[station.kind] += station.busy_s
        servers[station.kind] += station.servers
    return {kind: work[kind] / servers[kind] / spent_s + taken.get(kind, 0.0) for kind in work}
